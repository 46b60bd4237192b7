//! The begin of messages, steps and responses that continue a message.

use uuid::Uuid;

use crate::wire::ui::Protocol;
use crate::wire::ui::call::{Call, Earlier};
use crate::wire::ui::frame::{Frame, RunIds};
use crate::wire::ui::order::Order;

impl Order {
    /// Sets the ids of the run, unless they were written already.
    pub(in crate::wire::ui) fn for_run(&mut self, thread: &str, run: &str) {
        if !self.begun {
            self.run = RunIds { thread: thread.to_owned(), run: run.to_owned() };
        }
    }

    /// Continues a message: its calls, announced in an earlier response, are updated in place. A protocol that has no
    /// frame for that starts them again.
    pub(in crate::wire::ui) fn resume(&mut self, message: &str, calls: impl Iterator<Item = (String, Earlier)>) {
        if self.protocol == Protocol::AgUi {
            // Texts of the earlier response may have ids that begin with the id of the message.
            self.run = RunIds { thread: message.to_owned(), run: format!("run_{}", Uuid::new_v4().simple()) };
        }
        self.name(message);
        if self.protocol.updates_in_place() {
            for (id, asked) in calls {
                if self.used.insert(self.hash(&id)) {
                    self.calls.push(Call::earlier(id, asked));
                }
            }
        }
    }

    /// Names the message, unless it has a name. AG-UI begins with the first event after it: the ids of the run can
    /// still be set.
    pub(super) fn name(&mut self, id: &str) {
        if self.message.is_none() {
            self.message = Some(id.to_owned());
            if self.protocol != Protocol::AgUi {
                self.begin();
            }
        }
    }

    pub(super) fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let fresh = || format!("msg_{}", Uuid::new_v4().simple());
        let id = self.message.get_or_insert_with(fresh).clone();
        for name in [&mut self.run.thread, &mut self.run.run] {
            if name.is_empty() {
                name.clone_from(&id);
            }
        }
        let Self { protocol, run, out, .. } = self;
        protocol.write(&Frame::MessageStart { id: &id, run }, out);
    }

    pub(super) fn begin_step(&mut self) {
        self.begin();
        if !self.in_step {
            self.in_step = true;
            let id = self.message.clone().unwrap_or_default();
            self.write(&Frame::StepStart { id: &id });
            self.write_files();
        }
    }
}
