/// How far away from the caller a clock is read: nowhere.
#[capability(effect = read_only)]
#[async_trait]
pub trait Clock: Debug {
    async fn now(&self) -> Timestamp;
}
