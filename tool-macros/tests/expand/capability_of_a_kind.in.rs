/// Someone's calendar.
#[capability(effect = external_side_effect, kind = "calendar", crate = facade::rt)]
trait Calendar {
    fn next(&self) -> Entry;
}
