"""Which internet addresses are public: others than these are never asked for what an app says of itself. Pure."""

import ipaddress
from typing import Final

# Never asked, though they are, or some versions of Python take them for, addresses of the public internet.
_NEVER: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's services for its machines
            "192.0.0.0/24",  # protocols, and services of one cloud for its machines
            "192.88.99.0/24",  # relays of 6to4
            "2002::/16",  # 6to4: leads to any address of IPv4
            "2001::/32",  # Teredo: the same
        ),
    )
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # all that is given out of IPv6
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Whether an address, such as 93.184.216.34, is one of the public internet that leads to one machine there. Of one
    of IPv6 that stands for one of IPv4, that is judged."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        inside = address.ipv4_mapped
        if inside is None and address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is None and address not in _UNICAST:
            return False
        address = inside or address
    if any(address in network for network in _NEVER if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
