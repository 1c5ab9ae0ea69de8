//! Launches: one call each, and the handling of its answer.

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Answer, Ec2Error};
use provider_core::{ErrorClass, Launch, Launched, Observed, Offering, Refusal, back_off};
use provider_runtime::events::Happened;

use super::{Acted, Actor, LaunchOutcome, Persisted, PromisedLaunch};
use crate::locking::lock;
use crate::validate::{Valid, template_name};

/// After this many failed calls for one launch EC2 lists its instances, if it has some. With the
/// back-off between the calls, these are more than two minutes.
const LISTED_AFTER: u32 = 5;

impl<W> Actor<'_, W> {
    /// Asks EC2 for one launch. It does not ask if an earlier launch of the plan was refused for a
    /// reason that concerns this one too.
    pub(super) async fn launch(
        &self,
        promised: &Persisted<&PromisedLaunch>,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let PromisedLaunch { launch, is_new } = promised.get();
        let is_new = *is_new;
        let Some(valid) = self.valid else { return };
        let is_held = observed.hold_launches_until.is_some_and(|u| u > self.now);
        let is_unavailable = |offering| observed.unavailable.at(offering, self.now).is_some();
        let is_vain = launch.offerings.iter().all(is_unavailable);
        if is_new && (is_held || is_vain) {
            observed.launches.retain(|l| l.launch != launch.launch);
        }
        if is_held || (is_new && is_vain) {
            return;
        }
        let answer = match self.ask(valid, launch, observed).await {
            Err(error) if may_have_launched(&error, is_new) => self.found(launch, error).await,
            answer => answer,
        };
        match self.patient_with_new_group(answer) {
            Ok(answer) => self.answered(launch, is_new, &answer, observed, acted),
            Err(error) => self.refused(launch, is_new, &error, observed, acted),
        }
    }

    /// Makes one call. It creates the launch template if that is missing.
    async fn ask(
        &self,
        valid: &Valid,
        launch: &Launch,
        observed: &Observed,
    ) -> Result<Answer, Ec2Error> {
        let request = valid.request(launch);
        let is_known = self.region.templates().contains(&request.template);
        if !is_known {
            self.create_template(valid, launch, observed).await?;
        }
        match self.region.ec2.launch(&request).await {
            Err(error) if error.is_template_missing() => {
                self.create_template(valid, launch, observed).await?;
                self.region.ec2.launch(&request).await
            }
            answer => answer,
        }
    }

    async fn create_template(
        &self,
        valid: &Valid,
        launch: &Launch,
        observed: &Observed,
    ) -> Result<(), Ec2Error> {
        let group_ids = valid.desired.group_ids(observed).unwrap_or_default();
        let request = valid.template(&launch.generation, group_ids);
        self.region.ec2.create_template(&request).await?;
        self.region.templates().insert(request.name);
        Ok(())
    }

    /// The answer, in which a refusal for a group that was created a moment ago is no reason to wait
    /// for minutes. EC2 gives it in the place of the answer, or for each offering inside an answer.
    fn patient_with_new_group(&self, answer: Result<Answer, Ec2Error>) -> Result<Answer, Ec2Error> {
        if !self.region.has_young_group(self.identity, self.now) {
            return answer;
        }
        let mut answer = match answer {
            Err(error) if error.is_group_missing() => return Err(error.for_now()),
            answer => answer?,
        };
        for (_, refusal) in &mut answer.refusals {
            if refusal.is_group_missing() {
                refusal.class = ErrorClass::Transient;
            }
        }
        Ok(answer)
    }

    /// The instances that EC2 has of a launch that it refuses to repeat.
    async fn found(&self, launch: &Launch, error: Ec2Error) -> Result<Answer, Ec2Error> {
        let ec2 = &self.region.ec2;
        let of_launch = ec2.instances_of_launch(self.identity, launch.launch);
        let instances = of_launch.await?;
        if instances.is_empty() {
            return Err(error);
        }
        let launched = instances.into_iter().map(|instance| Launched {
            id: instance.id,
            offering: instance.offering,
        });
        Ok(Answer {
            launched: launched.collect(),
            refusals: Vec::new(),
        })
    }

    fn answered(
        &self,
        launch: &Launch,
        is_new: bool,
        answer: &Answer,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let known = self.valid.map_or(&[][..], |v| &v.desired.offerings);
        let offerings = self.region.unavailable();
        let mut unavailable = lock(&offerings);
        for one in &answer.launched {
            unavailable.granted(&one.offering, self.now);
        }
        // EC2 answers a repeated launch with the first call's result. Its refusals for capacity say
        // nothing about the present, and another launch asks for the capacity.
        let cannot_work = cannot_work(launch, answer);
        for (offering, refusal) in answer.refusals.iter().filter(|_| is_new) {
            if is_about_offering(refusal, cannot_work) {
                unavailable.unsold(offering, refusal, self.now);
            } else {
                unavailable.refused(offering, refusal, known, self.now);
            }
        }
        observed.unavailable.clone_from(&unavailable);
        drop(unavailable);
        self.region.unlisted().note(&answer.launched, self.now);
        for one in &answer.launched {
            let text = format!("launched {}: {}", one.id, one.offering);
            acted.happened.push(Happened::normal("Launched", text));
        }
        let is_short = answer.launched.len() < usize::try_from(launch.count).unwrap_or(usize::MAX);
        acted.launch = Some(match answer.refusals.last() {
            Some((offering, refusal)) if is_short => {
                if !is_about_offering(refusal, cannot_work) {
                    self.hold(refusal.class, observed);
                }
                outcome(offering, refusal)
            }
            _ => LaunchOutcome::Launched,
        });
        if is_short && answer.refusals.is_empty() {
            // EC2 gave fewer instances and no reason: the provider asks again later.
            self.hold(ErrorClass::Transient, observed);
        }
        if answer.launched.is_empty() {
            observed.launches.retain(|l| l.launch != launch.launch);
            return;
        }
        for own in &mut observed.launches {
            if own.launch == launch.launch {
                own.answer = Some(answer.launched.clone());
            }
        }
        observed.settle();
    }

    fn refused(
        &self,
        launch: &Launch,
        is_new: bool,
        error: &Ec2Error,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let known = self.valid.map_or(&[][..], |v| &v.desired.offerings);
        let refusal = error.refusal();
        if error.is_template_missing() {
            let name = template_name(self.identity, &launch.generation);
            self.region.templates().remove(&name);
        }
        let offerings = self.region.unavailable();
        let mut unavailable = lock(&offerings);
        // EC2 names no offering, so a refusal for what the spec says is about all of it.
        let is_about_offering = is_about_offering(&refusal, true);
        for offering in &launch.offerings {
            if is_about_offering {
                unavailable.unsold(offering, &refusal, self.now);
            } else {
                unavailable.refused(offering, &refusal, known, self.now);
            }
        }
        observed.unavailable.clone_from(&unavailable);
        drop(unavailable);
        // An earlier call whose answer was lost may have launched before this one was refused. EC2
        // lists its instances, but perhaps not yet.
        let is_lack = is_refused_for_lack(error);
        let is_over = is_new || (is_lack && launch.failures >= LISTED_AFTER);
        if error.is_token_over() || (error.class.is_definite() && is_over) {
            observed.launches.retain(|l| l.launch != launch.launch);
        }
        for own in &mut observed.launches {
            if own.launch != launch.launch {
            } else if error.is_token_mismatch() {
                own.give_up();
            } else {
                own.failed(error.class == ErrorClass::Throttled);
            }
        }
        if is_lack && !is_over {
            self.hold(ErrorClass::Transient, observed);
        } else if !is_about_offering {
            self.hold(error.class, observed);
        }
        acted.launch = launch
            .offerings
            .first()
            .map(|offering| outcome(offering, &refusal));
    }

    fn hold(&self, class: ErrorClass, observed: &mut Observed) {
        hold(class, observed, self.identity, self.now);
    }
}

/// Lets a pool hold its launches after an error that another offering does not cure. It holds them
/// for longer each time.
pub(crate) fn hold(class: ErrorClass, observed: &mut Observed, identity: &str, now: Timestamp) {
    if let Some(first) = rest_after(class) {
        observed.launch_failures = observed.launch_failures.saturating_add(1);
        // EC2's buckets are full again after seconds.
        let most = if class == ErrorClass::Throttled {
            3
        } else {
            u32::MAX
        };
        let rest = back_off(first, observed.launch_failures.min(most), identity);
        let until = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        observed.hold_launches_until = Some(until);
    }
}

/// Whether an earlier call with the same token may have launched instances, although EC2 refuses
/// this one. EC2 may look for the limit before it looks for the token.
fn may_have_launched(error: &Ec2Error, is_new: bool) -> bool {
    let is_spent = error.is_token_mismatch() || error.is_token_over();
    is_spent || (!is_new && is_refused_for_lack(error))
}

/// Whether EC2 lacks what the launch asks for.
fn is_refused_for_lack(error: &Ec2Error) -> bool {
    matches!(error.class, ErrorClass::Capacity | ErrorClass::Quota)
}

/// Whether EC2 refused everything that the launch asked for, each for what the spec says. Then a
/// person has to change the spec. Otherwise the refusals are about the offerings that they name.
fn cannot_work(launch: &Launch, answer: &Answer) -> bool {
    let is_refused = |offering: &&Offering| {
        let mut refusals = answer.refusals.iter();
        refusals.any(|(of, refusal)| of == *offering && refusal.class == ErrorClass::Configuration)
    };
    answer.launched.is_empty() && launch.offerings.iter().all(|one| is_refused(&one))
}

/// Whether another offering may do where EC2 refused this one, although the refusal is neither for
/// capacity nor for a limit. `cannot_work` says whether EC2 refused the whole spec.
fn is_about_offering(refusal: &Refusal, cannot_work: bool) -> bool {
    let is_configuration = refusal.class == ErrorClass::Configuration;
    refusal.lacks_spot_role() || (is_configuration && !cannot_work)
}

fn outcome(offering: &Offering, refusal: &Refusal) -> LaunchOutcome {
    LaunchOutcome::Refused {
        offering: offering.clone(),
        refusal: refusal.clone(),
    }
}

/// How long a pool holds its launches after the first error that another offering does not cure.
fn rest_after(class: ErrorClass) -> Option<SignedDuration> {
    match class {
        ErrorClass::Capacity | ErrorClass::Quota => None,
        ErrorClass::Throttled => Some(SignedDuration::from_secs(10)),
        ErrorClass::Transient => Some(SignedDuration::from_secs(5)),
        ErrorClass::Denied | ErrorClass::Configuration => Some(SignedDuration::from_mins(5)),
    }
}
