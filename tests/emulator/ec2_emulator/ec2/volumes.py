"""CreateVolume, idempotent by its client token."""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.elastic_block_store import ElasticBlockStore

from .block_devices import GP3_THROUGHPUT
from .region import Region


class Volumes(ElasticBlockStore):
    here: Region

    def create_volume(self) -> ActionResult:
        parameters: dict[str, Any] = dict(self.params)
        token = parameters.get("ClientToken")
        earlier = self.here.tokens.find("CreateVolume", token, parameters)
        if earlier is not None:
            return ActionResult(earlier)
        result: ActionResult = super().create_volume()
        volume: Any = result.result
        if volume.volume_type == "gp3" and not volume.throughput:
            volume.throughput = GP3_THROUGHPUT
        self.here.tokens.bind("CreateVolume", token, parameters, volume)
        return result
