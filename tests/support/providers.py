"""Schedule providers that tests play themselves."""

from harness.providers import PROVIDER_GROUP, ProviderKind, provider_crd

__all__ = ["PROVIDER_GROUP", "ProviderKind", "provider_crd"]
