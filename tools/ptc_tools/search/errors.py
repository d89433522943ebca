"""What can go wrong in a search: always the host's matter, told when an index is made or changed.

PtcError
 └── SearchError              an index cannot be made or asked as it was set up
      ├── SearchUnavailable   the packages of the hybrid search are not installed, or are not what they were
      └── EncoderError        an encoder gave something else than a vector of numbers for each text
"""

from __future__ import annotations

from ptc_tools.errors import PtcError


class SearchError(PtcError):
    """An index cannot be made or asked as it was set up."""

    code = "search_error"


class SearchUnavailable(SearchError):
    """What the hybrid search needs is not installed, or is not what it was measured with."""

    code = "search_unavailable"


class EncoderError(SearchError):
    """An encoder did not give one vector of finite numbers, of the size it declares, for each text."""

    code = "encoder_error"
