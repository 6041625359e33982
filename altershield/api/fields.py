"""Types of fields that several of our kinds share."""

from typing import Annotated

import msgspec

from altershield.api.meta import Condition

Name = Annotated[str, msgspec.Meta(max_length=253)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Generation = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Conditions = Annotated[
    tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state as Kubernetes conditions.")
]
