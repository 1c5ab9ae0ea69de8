"""EC2 as a whole: this emulator's operations over moto's for the rest."""

import logging
from typing import Any

from botocore.model import OperationNotFoundError
from moto.core.request import Request
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from ..errors import AwsError, error_body
from ..faults import Faults
from .fleets import Fleets
from .groups import Groups
from .instances import Instances
from .offerings import Offerings
from .region import Region
from .spot_requests import SpotRequests
from .statuses import Statuses
from .tags import Tagging
from .volumes import Volumes

log = logging.getLogger("ec2_emulator")

Reply = tuple[int, dict[str, str], Any]


class Ec2Endpoint(
    Instances,
    Statuses,
    SpotRequests,
    Fleets,
    Offerings,
    Tagging,
    Groups,
    Volumes,
    EC2Response,
):
    """`world` is the emulator; each emulator binds a subclass of its own."""

    world: Any

    @property
    def here(self) -> Region:  # type: ignore[override]
        region: Region = self.world.region(self.current_account, self.region)
        return region

    @property
    def faults(self) -> Faults:  # type: ignore[override]
        faults: Faults = self.world.faults
        return faults

    def error_on_dryrun(self) -> None:
        if self._get_param("DryRun", False):
            raise AwsError(
                "DryRunOperation",
                "Request would have succeeded, but DryRun flag is set.",
                412,
            )

    def _dispatch(
        self, request: Request, full_url: str | None = None, headers: Any = None
    ) -> Reply:
        try:
            self.setup_class(request, full_url, headers)
            reply: Reply = self.call_action()
            return reply
        except AwsError as error:
            refusal = error
        except OperationNotFoundError:
            refusal = AwsError(
                "InvalidAction",
                f"The action {self._get_action()} is not valid for this web service.",
            )
        except NotImplementedError as error:
            refusal = AwsError("NotImplementedByEmulator", str(error), 501)
        except EC2ClientError as error:
            refusal = AwsError(error.code, error.message)
        except Exception as error:
            # Not 500: clients take that for passing trouble and try again.
            log.exception("%s failed inside the emulator", self._get_action())
            refusal = AwsError(
                "EmulatorFailure", f"{type(error).__name__}: {error}", 501
            )
        body = error_body(refusal, "ec2", "request-id")
        return refusal.status, {"Content-Type": body.content_type}, body.content
