//! Launch templates, fleets, terminations and tags.

use jiff::Timestamp;
use memory_ec2::{Cloud, Faults, Machine, SplitMix64};
use provider_aws::{Image, LaunchPlace, LaunchRequest, TemplateRequest};
use provider_core::{Market, Offering};

use super::query::Query;
use super::xml::Xml;
use super::{Answer, refused};

pub(crate) fn create_template(query: &Query, cloud: &mut Cloud) -> Answer {
    let text = |key| query.text(key).unwrap_or_default().to_owned();
    let request = TemplateRequest {
        name: text("LaunchTemplateName"),
        group_ids: query.list("LaunchTemplateData.SecurityGroupId"),
        image: Image {
            id: text("LaunchTemplateData.ImageId"),
            root_device: String::new(),
            deprecated_at: None,
        },
        user_data: None,
        root_volume_size_gib: None,
        kms_key_id: None,
        iam_instance_profile: None,
        shows_tags: false,
        tags: query.tags_of("launch-template"),
    };
    if cloud.templates.contains_key(&request.name) {
        return Err("InvalidLaunchTemplateName.AlreadyExistsException".to_owned());
    }
    let name = request.name.clone();
    cloud.templates.insert(name.clone(), request);
    Ok(Xml::answer("CreateLaunchTemplate", |xml| {
        xml.element("launchTemplate", |xml| template(xml, &name));
    }))
}

pub(crate) fn describe_templates(query: &Query, cloud: &Cloud) -> String {
    let filters = query.filters();
    let passes = |template: &&TemplateRequest| {
        filters.iter().all(|filter| {
            filter
                .passes_tags(&template.tags)
                .unwrap_or_else(|| filter.values.contains(&template.name))
        })
    };
    let found = cloud.templates.values().filter(passes);
    Xml::answer("DescribeLaunchTemplates", |xml| {
        xml.set("launchTemplates", found, |xml, found| {
            template(xml, &found.name);
        });
    })
}

/// The id of a template is its name: the provider only needs an id that names one template.
fn template(xml: &mut Xml, name: &str) {
    xml.values(&[("launchTemplateId", name), ("launchTemplateName", name)]);
}

pub(crate) fn delete_template(query: &Query, cloud: &mut Cloud) -> Answer {
    let id = query.text("LaunchTemplateId").unwrap_or_default();
    let found = cloud.templates.remove(id);
    found.ok_or("InvalidLaunchTemplateId.NotFoundException")?;
    Ok(Xml::done("DeleteLaunchTemplate"))
}

/// AWS chooses the place of a fleet by price and capacity. This EC2 chooses by the client token, so
/// that the same token always gives the same answer.
pub(crate) fn create_fleet(query: &Query, cloud: &mut Cloud, now: Timestamp) -> Answer {
    let mut request = request(query)?;
    let number = request
        .token
        .bytes()
        .fold(0, |sum, byte| sum * 31 % 65_521 + u64::from(byte));
    let first = SplitMix64(number).below(request.places.len() as u64);
    request
        .places
        .rotate_left(usize::try_from(first).unwrap_or_default());
    let nothing_fails = Faults::default();
    let sells = |offering: &Offering, missing| nothing_fails.grant(offering, missing);
    cloud.launch(&request, sells, now).map_err(refused)?;
    let fleet = &cloud.fleets[&request.token];
    let machines = fleet.machines.iter().map(|index| &cloud.machines[*index]);
    let lifecycle = match request.market {
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    };
    Ok(Xml::answer("CreateFleet", |xml| {
        xml.value("fleetId", format_args!("fleet-{}", request.token));
        xml.set("errorSet", [(); 0], |_, ()| {});
        xml.set("fleetInstanceSet", machines, |xml, machine: &Machine| {
            let offering = &machine.offering;
            xml.value("instanceType", &offering.instance_type);
            xml.value("lifecycle", lifecycle);
            xml.element("launchTemplateAndOverrides", |xml| {
                xml.element("overrides", |xml| {
                    xml.value("instanceType", &offering.instance_type);
                    xml.value("availabilityZone", &offering.zone);
                });
            });
            xml.element("instanceIds", |xml| xml.value("item", &machine.id));
        });
    }))
}

fn request(query: &Query) -> Result<LaunchRequest, &'static str> {
    const CAPACITY: &str = "TargetCapacitySpecification";
    const CONFIG: &str = "LaunchTemplateConfigs.1";
    let text = |key: String| {
        query
            .text(&key)
            .map(str::to_owned)
            .ok_or("MissingParameter")
    };
    let overrides = query.items(&format!("{CONFIG}.Overrides"));
    let places = overrides.map(|item| {
        Ok(LaunchPlace {
            instance_type: text(format!("{item}.InstanceType"))?,
            zone: text(format!("{item}.AvailabilityZone"))?,
            subnet_id: text(format!("{item}.SubnetId"))?,
        })
    });
    let count = query.number(&format!("{CAPACITY}.TotalTargetCapacity"));
    let count = count.and_then(|count| u32::try_from(count).ok());
    let market = text(format!("{CAPACITY}.DefaultTargetCapacityType"))?;
    Ok(LaunchRequest {
        token: text("ClientToken".to_owned())?,
        template: text(format!(
            "{CONFIG}.LaunchTemplateSpecification.LaunchTemplateName"
        ))?,
        count: count.ok_or("MissingParameter")?,
        market: if market == "spot" {
            Market::Spot
        } else {
            Market::OnDemand
        },
        places: places.collect::<Result<_, &'static str>>()?,
        tags: query.tags_of("instance"),
    })
}

pub(crate) fn terminate(query: &Query, cloud: &mut Cloud, now: Timestamp) -> Answer {
    for id in query.list("InstanceId") {
        cloud.find(&id).ok_or("InvalidInstanceID.NotFound")?;
        cloud.end(&id, "Client.UserInitiatedShutdown", now);
    }
    Ok(Xml::done("TerminateInstances"))
}

pub(crate) fn tag(query: &Query, cloud: &mut Cloud) -> Answer {
    let tags = query.tags("");
    for id in query.list("ResourceId") {
        let machine = cloud.find(&id).ok_or("InvalidInstanceID.NotFound")?;
        machine.tags.extend(tags.clone());
    }
    Ok(Xml::done("CreateTags"))
}
