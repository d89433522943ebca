"""The one table of the modules that programs may import, and of the names they offer.

A name that this Python does not have is left out when the module is built. Nothing here imports the
modules: the policy asks this table before a program runs.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Final

_NAMES: Final[dict[str, str]] = {
    "__future__": "annotations division print_function unicode_literals absolute_import generator_stop",
    "abc": "ABC ABCMeta abstractmethod abstractclassmethod abstractproperty abstractstaticmethod",
    "ast": "literal_eval",
    "base64": """
        b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode b64encode b85decode
        b85encode a85decode a85encode decodebytes encodebytes standard_b64decode standard_b64encode
        urlsafe_b64decode urlsafe_b64encode
        """,
    "binascii": "Error Incomplete a2b_base64 a2b_hex b2a_base64 b2a_hex crc32 crc_hqx hexlify unhexlify",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "calendar": """
        Calendar FRIDAY MONDAY SATURDAY SUNDAY THURSDAY TUESDAY WEDNESDAY JANUARY FEBRUARY MARCH APRIL MAY
        JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER Day Month IllegalMonthError
        IllegalWeekdayError calendar day_abbr day_name isleap leapdays month month_abbr month_name
        monthcalendar monthrange timegm week weekday weekheader
        """,
    "cmath": """
        acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10
        nan nanj phase pi polar rect sin sinh sqrt tan tanh tau
        """,
    "collections": "ChainMap Counter OrderedDict UserDict UserList abc defaultdict deque namedtuple",
    "collections.abc": """
        AsyncGenerator AsyncIterable AsyncIterator Awaitable ByteString Callable Collection Container
        Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView
        MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
        """,
    "colorsys": "hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv rgb_to_yiq yiq_to_rgb",
    "contextlib": """
        AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator AsyncExitStack
        ContextDecorator ExitStack aclosing asynccontextmanager closing contextmanager nullcontext
        redirect_stderr redirect_stdout suppress
        """,
    "copy": "Error copy deepcopy replace",
    "csv": """
        Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC
        QUOTE_NOTNULL QUOTE_STRINGS Sniffer excel excel_tab list_dialects reader unix_dialect writer
        """,
    "dataclasses": """
        FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields is_dataclass
        make_dataclass replace Field
        """,
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo",
    "decimal": """
        Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple DivisionByZero
        DivisionImpossible DivisionUndefined FloatOperation Inexact InvalidContext InvalidOperation
        MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR
        ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow getcontext
        localcontext setcontext
        """,
    "difflib": """
        Differ IS_CHARACTER_JUNK IS_LINE_JUNK Match SequenceMatcher context_diff get_close_matches ndiff
        restore unified_diff
        """,
    "enum": """
        CONTINUOUS CONFORM EJECT Enum EnumMeta EnumType Flag FlagBoundary IntEnum IntFlag KEEP NAMED_FLAGS
        STRICT StrEnum UNIQUE auto member nonmember unique verify
        """,
    "fnmatch": "filter fnmatch fnmatchcase translate",
    "fractions": "Fraction",
    "functools": """
        cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch
        singledispatchmethod total_ordering update_wrapper wraps
        """,
    "graphlib": "CycleError TopologicalSorter",
    "hashlib": """
        algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac scrypt sha1 sha224 sha256 sha384
        sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
        """,
    "heapq": """
        heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest heapify_max heappop_max
        heappush_max heappushpop_max heapreplace_max
        """,
    "hmac": "compare_digest digest new",
    "html": "escape parser unescape",
    "html.parser": "HTMLParser",
    "io": "BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO UnsupportedOperation",
    "itertools": """
        accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
        """,
    "json": "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads",
    "keyword": "iskeyword issoftkeyword kwlist softkwlist",
    "logging": """
        CRITICAL DEBUG ERROR INFO WARNING basicConfig critical debug error exception getLogger info log
        warning
        """,
    "math": """
        acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc
        exp exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf
        isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians
        remainder sin sinh sqrt sumprod tan tanh tau trunc ulp
        """,
    "numbers": "Complex Integral Number Rational Real",
    "operator": """
        abs add and_ attrgetter call concat contains countOf delitem eq floordiv ge getitem gt iadd iand
        iconcat ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not
        isub itemgetter itruediv ixor le length_hint lshift lt matmul methodcaller mod mul ne neg not_ or_
        pos pow rshift setitem sub truediv truth xor is_none is_not_none
        """,
    "pprint": "isreadable isrecursive pformat pp pprint saferepr",
    "random": """
        Random betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits
        getstate lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed
        setstate shuffle triangular uniform vonmisesvariate weibullvariate
        """,
    "re": """
        A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern PatternError RegexFlag S U UNICODE
        VERBOSE X compile error escape findall finditer fullmatch match purge search split sub subn
        """,
    "secrets": "choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe",
    "shlex": "join quote split",
    "statistics": """
        LinearRegression NormalDist StatisticsError correlation covariance fmean geometric_mean
        harmonic_mean kde linear_regression mean median median_grouped median_high median_low mode
        multimode pstdev pvariance quantiles stdev variance
        """,
    "string": """
        Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits
        octdigits printable punctuation whitespace
        """,
    "struct": "Struct calcsize error iter_unpack pack pack_into unpack unpack_from",
    "sys": "byteorder exit float_info maxsize maxunicode stderr stdout version_info",
    "textwrap": "TextWrapper dedent fill indent shorten wrap",
    "time": """
        asctime ctime gmtime localtime mktime monotonic monotonic_ns perf_counter perf_counter_ns
        process_time process_time_ns sleep strftime strptime struct_time time time_ns
        """,
    "traceback": "format_exc format_exception format_exception_only print_exc print_exception",
    "types": """
        AsyncGeneratorType BuiltinFunctionType BuiltinMethodType CoroutineType EllipsisType FunctionType
        GeneratorType GenericAlias LambdaType MappingProxyType MethodType NoneType NotImplementedType
        SimpleNamespace UnionType
        """,
    "typing": """
        AbstractSet Annotated Any AnyStr AsyncGenerator AsyncIterable AsyncIterator Awaitable BinaryIO
        Callable ChainMap ClassVar Collection Concatenate Container Coroutine Counter DefaultDict Deque
        Dict Final FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List
        Literal LiteralString Mapping MappingView MutableMapping MutableSequence MutableSet NamedTuple
        Never NewType NoReturn NotRequired Optional OrderedDict ParamSpec Protocol ReadOnly Required
        Reversible Self Sequence Set Sized SupportsAbs SupportsBytes SupportsComplex SupportsFloat
        SupportsIndex SupportsInt SupportsRound TYPE_CHECKING Text TextIO Tuple Type TypeAlias
        TypeAliasType TypeGuard TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView assert_never
        assert_type cast final get_args get_origin is_typeddict no_type_check overload override
        runtime_checkable
        """,
    "unicodedata": """
        bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup
        mirrored name normalize numeric unidata_version
        """,
    "urllib": "parse",
    "urllib.parse": """
        ParseResult SplitResult parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus
        unquote_to_bytes urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit
        """,
    "uuid": """
        NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RFC_4122 SafeUUID UUID uuid3 uuid4 uuid5
        """,
    "warnings": "catch_warnings filterwarnings resetwarnings simplefilter warn",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError available_timezones",
    "zlib": "adler32 compress crc32 decompress error",
}

_MEMBERS: Final[dict[str, frozenset[str] | None]] = {
    **{module: frozenset(text.split()) for module, text in _NAMES.items()},
    "asyncio": None,  # the guest runtime's own
}

_INSTEAD: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "os",
            "pathlib",
            "shutil",
            "tempfile",
            "glob",
            "subprocess",
            "platform",
            "ctypes",
            "builtins",
            "importlib",
        ),
        "Programs have no access to the system or to files: what they need comes from tools.",
    ),
    **dict.fromkeys(
        (
            "socket",
            "requests",
            "httpx",
            "aiohttp",
            "http",
            "urllib3",
            "ssl",
            "smtplib",
            "ftplib",
            "urllib.request",
        ),
        "Programs have no network: call a tool.",
    ),
    **dict.fromkeys(
        ("threading", "multiprocessing", "concurrent", "concurrent.futures", "queue", "_thread"),
        "Use asyncio.gather or asyncio.TaskGroup to do things at once.",
    ),
    **dict.fromkeys(("pickle", "marshal", "shelve", "dill"), "Use json."),
    **dict.fromkeys(
        ("numpy", "pandas", "scipy", "polars"), "Use lists and dicts with statistics, math and collections."
    ),
    **dict.fromkeys(("inspect", "gc", "dis", "code"), "Programs cannot look into the interpreter."),
    "contextvars": "Pass the value as an argument, or keep it in an object.",
    "array": "Use a list, or struct for bytes.",
    "weakref": "Programs are short: keep the object itself.",
}

REFUSED_MEMBERS: Final[dict[str, dict[str, str]]] = {
    "ast": dict.fromkeys(
        ("parse", "walk", "dump", "NodeVisitor"), "Only literal_eval is here: programs read literals."
    ),
    "sys": {
        **dict.fromkeys(("modules", "path", "argv", "executable"), "Programs have no access to the system."),
        "stdin": "Nobody is there to type: put the value into the program.",
        "setrecursionlimit": "Use a loop with a list of what is still to do.",
    },
    "typing": {"get_type_hints": "It would evaluate text as code. Read the annotations you wrote yourself."},
    "random": {"SystemRandom": "All randomness comes from the run's seed: use random.Random() or secrets."},
    "uuid": {
        "uuid1": "It would read the machine's address: use uuid.uuid4().",
        "getnode": "It would read the machine's address: use uuid.uuid4().",
    },
    "json": dict.fromkeys(("codecs", "decoder", "encoder", "scanner"), "Use json.loads and json.dumps."),
    "io": {"open": "There are no files: use io.StringIO for text in memory."},
    "types": {"new_class": "Write a class statement.", "FunctionType": "Write a def statement."},
}
"""Members that programs ask for and do not get, with what to do instead."""


def has_module(module: str) -> bool:
    """Whether programs may import the module of this dotted name."""
    return module in _MEMBERS


def modules() -> list[str]:
    """The names of all modules that programs may import."""
    return sorted(name for name in _MEMBERS if not name.startswith("_"))


def members(module: str) -> frozenset[str] | None:
    """The names that a module offers; None where they are not known before the run."""
    return _MEMBERS.get(module)


def star(module: str) -> list[str]:
    """The names that `from module import *` binds on this Python."""
    real = importlib.import_module(module)
    return sorted(name for name in members(module) or () if hasattr(real, name))


def no_module(module: str) -> str:
    """What to tell a program that imports a module there is not."""
    hint = _INSTEAD.get(module) or _INSTEAD.get(module.partition(".")[0])
    if not hint:
        close = difflib.get_close_matches(module, modules(), 1, 0.8)
        hint = f"Did you mean {close[0]}?" if close else f"Available: {', '.join(modules())}."
    return f"The module {module} is not available to programs. {hint}"


def missing(module: str, name: str) -> str:
    """What to tell a program that asks a module for a name that it does not offer."""
    hint = REFUSED_MEMBERS.get(module, {}).get(name)
    if not hint:
        hint = f"The module offers: {', '.join(sorted(members(module) or ()))}."
    return f"{module}.{name} is not available to programs. {hint}"
