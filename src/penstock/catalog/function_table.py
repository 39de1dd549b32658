"""Which built-in functions of Spark a query may call, as one compact table.

A line is `arguments returns names…`. `arguments` is a count (`2`), a range (`1..3`) or open (`1..`). `returns` is a
rule of `penstock.catalog.return_types`. A name may carry marks: `~` its value may differ when the same rows are
computed again, `^` it takes lambdas, `+` (aggregates) a store can merge the results of two batches.

Plain text, because it is read by people more often than by the program, and reading it costs less than a millisecond.
"""

from __future__ import annotations

from typing import Final

SCALARS: Final = """
0     DOUBLE    e pi
0..1  DOUBLE    rand~ randn~ random~
1     DOUBLE    acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln log10 log1p log2 radians
1     DOUBLE    rint sec sign signum sin sinh sqrt tan tanh
1..2  DOUBLE    log
2     DOUBLE    atan2 hypot nanvl pow power
1     number    abs negative positive
1..2  round     bround round
1..2  floor     ceil ceiling floor
1     BIGINT    factorial
1     INT       bit_count
2     TINYINT   bit_get getbit
2     shift     shiftleft shiftright shiftrightunsigned
2     common    mod pmod try_mod
2     whole     try_add try_multiply try_subtract
2     unknown   try_divide
2..   common    greatest least
2..3  unknown   uniform~
4     BIGINT    width_bucket

1     BOOLEAN   isnan isnotnull isnull
2     BOOLEAN   contains endswith equal_null regexp regexp_like rlike startswith
2..3  BOOLEAN   ilike like

1..   first     coalesce
2     first     ifnull nvl
2     arg0      nullif
1     arg0      nullifzero
1     or_zero   zeroifnull
3     branch    if nvl2

1     BIGINT    bigint
1     BINARY    binary
1     BOOLEAN   boolean
1     DATE      date
1     DECIMAL   decimal
1     DOUBLE    double
1     FLOAT     float
1     INT       int
1     SMALLINT  smallint
1     STRING    string
1     TIMESTAMP timestamp
1     TINYINT   tinyint

1     STRING    base64 bin char chr collation hex initcap lcase lower make_valid_utf8 md5 quote sha sha1 soundex space
1     STRING    try_url_decode try_validate_utf8 typeof ucase upper url_decode url_encode validate_utf8
1     BIGINT    crc32
1..   INT       hash
1..   BIGINT    xxhash64
2     STRING    sha2
1..2  STRING    btrim ltrim rtrim trim
2     STRING    collate format_number get_json_object regexp_substr repeat right to_char to_varchar
2     text      left
2..3  characters  lpad rpad
2..3  text      substr substring
3..4  text      overlay
2..3  STRING    array_join parse_url regexp_extract replace try_parse_url
3     STRING    conv split_part substring_index translate
3..4  STRING    regexp_replace
1..5  STRING    mask
1..   STRING    format_string printf
1..   STRING    concat_ws
0..   concat    concat
2..   decoded   decode
2..   unknown   elt
2     BINARY    encode
1     BINARY    unbase64 unhex
1..2  BINARY    to_binary try_to_binary
0..1  STRING    uuid~
1..2  STRING    randstr~
2..6  BINARY    aes_encrypt~
2..5  BINARY    aes_decrypt try_aes_decrypt
1     INT       ascii bit_length char_length character_length len length octet_length
2     INT       find_in_set instr regexp_count
2..3  INT       levenshtein locate position regexp_instr
1     BOOLEAN   is_valid_utf8 luhn_check
2     unknown   to_number try_to_number
2..3  ARRAY<STRING>  regexp_extract_all split
1..3  unknown   sentences
1..3  MAP<STRING,STRING>  str_to_map

0     DATE      curdate~ current_date~
2     DATE      add_months date_add date_sub next_day trunc
1     DATE      date_from_unix_date last_day
3     DATE      make_date
1..2  DATE      to_date try_to_date
0     TIMESTAMP current_timestamp~ localtimestamp~ now~
1     TIMESTAMP timestamp_micros timestamp_millis timestamp_seconds window_time
2     TIMESTAMP date_trunc from_utc_timestamp to_utc_timestamp
2..3  TIMESTAMP convert_timezone
1..2  TIMESTAMP to_timestamp to_timestamp_ltz to_timestamp_ntz try_to_timestamp
1..7  TIMESTAMP make_timestamp try_make_timestamp
2..7  TIMESTAMP make_timestamp_ltz try_make_timestamp_ltz
2..6  TIMESTAMP make_timestamp_ntz try_make_timestamp_ntz
2..3  arg1      time_bucket
0     STRING    current_timezone
1     STRING    dayname monthname
1..2  STRING    from_unixtime
2     STRING    date_format
1     INT       day dayofmonth dayofweek dayofyear hour minute month quarter second unix_date weekday weekofyear year
2     INT       date_diff datediff
2     unknown   date_part dateadd datepart
1     BIGINT    unix_micros unix_millis unix_seconds
0..2  BIGINT    unix_timestamp
1..2  BIGINT    to_unix_timestamp
2..3  DOUBLE    months_between
0..4  INTERVAL  make_dt_interval
0..7  INTERVAL  make_interval
1..7  INTERVAL  try_make_interval
0..2  INTERVAL  make_ym_interval

0..   array_of_all  array
2     arg0      array_append array_except array_intersect array_prepend array_remove array_union
1     arg0      array_compact array_distinct
1     reverse   reverse
3     arg0      array_insert slice
1..2  arg0      array_sort^ shuffle~ sort_array
2     BOOLEAN   array_contains arrays_overlap map_contains_key
1     element   array_max array_min flatten
2     element   element_at get try_element_at
2     BIGINT    array_position
2     array     array_repeat
2..3  sequence  sequence
1     INT       array_size cardinality json_array_length size
0..   pairs     map
0..   unknown   arrays_zip named_struct struct
0..   arg0      map_concat
1     entries   map_entries
1     keys      map_keys
1     values    map_values
1     map_of_entries  map_from_entries
2     map_of_arrays   map_from_arrays
3..4  unknown   aggregate^ reduce^
2     BOOLEAN   exists^ forall^
2     arg0      filter^ map_filter^
2     unknown   transform^ transform_keys^ transform_values^
3     unknown   map_zip_with^ zip_with^

2..3  unknown   from_csv from_json
2     unknown   from_xml
1..2  STRING    schema_of_csv schema_of_json to_csv to_json to_xml
1     STRING    schema_of_variant schema_of_xml
1     ARRAY<STRING>  json_object_keys
2     ARRAY<STRING>  xpath
2     BOOLEAN   xpath_boolean
2     DOUBLE    xpath_double xpath_number
2     FLOAT     xpath_float
2     INT       xpath_int
2     BIGINT    xpath_long
2     SMALLINT  xpath_short
2     STRING    xpath_string
1     VARIANT   parse_json to_variant_object try_parse_json
1     BOOLEAN   is_valid_variant is_variant_null
2..3  unknown   try_variant_get variant_get

1     BIGINT    bitmap_bit_position bitmap_bucket_number bitmap_count hll_sketch_estimate theta_sketch_estimate
2..3  BINARY    hll_union theta_union
2     BINARY    theta_difference theta_intersection
1..2  unknown   approx_top_k_estimate
1     BIGINT    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
2     unknown   kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
2     unknown   kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
2     BINARY    kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
1     STRING    kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
2     BINARY    tuple_difference_double tuple_difference_integer
2     BINARY    tuple_difference_theta_double tuple_difference_theta_integer
2..3  BINARY    tuple_intersection_double tuple_intersection_integer
2..3  BINARY    tuple_intersection_theta_double tuple_intersection_theta_integer
2..4  BINARY    tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
1     DOUBLE    tuple_sketch_estimate_double tuple_sketch_estimate_integer
1..2  unknown   tuple_sketch_summary_double tuple_sketch_summary_integer
1     DOUBLE    tuple_sketch_theta_double tuple_sketch_theta_integer
2     FLOAT     vector_cosine_similarity vector_inner_product vector_l2_distance
1..2  FLOAT     vector_norm
1..2  arg0      vector_normalize
"""

AGGREGATES: Final = """
1..   BIGINT    count+
1     BIGINT    count_if+
1     sum       sum+
1     avg       avg+ mean+
1     sum       try_sum+
1     avg       try_avg+
1     arg0      max+ min+ bit_and+ bit_or+ bit_xor+
1..2  arg0      any_value+~ first+~ first_value+~ last+~ last_value+~
1     BOOLEAN   any+ bool_and+ bool_or+ every+ some+
2..3  by        max_by+ min_by+
1     DOUBLE    std+ stddev+ stddev_pop+ stddev_samp+ var_pop+ var_samp+ variance+
1     array     array_agg+~ collect_list+~ collect_set+~
1..2  characters  listagg+~ string_agg+~
1..2  BIGINT    approx_count_distinct
2     DOUBLE    corr covar_pop covar_samp
1     DOUBLE    kurtosis skewness
1     quantile  median
2..3  percentile  approx_percentile percentile_approx
2..3  quantile  percentile
1     DOUBLE    percentile_cont
1     unknown   percentile_disc
0..2  arg0      mode
2     BIGINT    regr_count+
2     unknown   regr_avgx regr_avgy
2     DOUBLE    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
2     unknown   histogram_numeric
4     BINARY    count_min_sketch
1..3  unknown   approx_top_k
1..2  unknown   approx_top_k_accumulate approx_top_k_combine
1     BINARY    bitmap_and_agg bitmap_construct_agg bitmap_or_agg theta_intersection_agg
1..2  BINARY    hll_sketch_agg hll_union_agg theta_sketch_agg theta_union_agg
1..2  BINARY    kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
1..2  BINARY    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
2..4  BINARY    tuple_sketch_agg_double tuple_sketch_agg_integer
1..2  BINARY    tuple_intersection_agg_double tuple_intersection_agg_integer
1..3  BINARY    tuple_union_agg_double tuple_union_agg_integer
1     STRING    schema_of_variant_agg
1     arg0      vector_avg vector_sum
"""

WINDOW_FUNCTIONS: Final = """
0     INT       dense_rank rank row_number
0     DOUBLE    cume_dist percent_rank
1     INT       ntile
1..3  arg0      lag lead
2..3  arg0      nth_value
"""

GENERATORS: Final = """
1     element   explode explode_outer
1     unknown   inline inline_outer posexplode posexplode_outer variant_explode variant_explode_outer
2..   unknown   json_tuple stack
"""

# The planner gives these their meaning by itself: windows are tree nodes of their own, the processing time is the
# batch's clock, and the grouping functions belong to GROUPING SETS.
SPECIAL: Final = """
2..4  unknown   window
2     unknown   session_window
0     TIMESTAMP proctime~
1     TINYINT   grouping
0..   BIGINT    grouping_id
"""

# Spark lists its operators and pieces of syntax as functions. They have their own tree nodes and are no names to call.
_SIGNS = "! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ | || ~"
_WORDS = "and between case cast div extract in not or when"
OPERATORS: Final = frozenset(f"{_SIGNS} {_WORDS}".split())

_OUTSIDE = "it runs code from outside the query"
_FILES = "it tells where the engine's files lie"
_IDENTITY = "it tells who the engine runs as"
_SESSION = "it reads the engine's session, not the row"
_FAILS = "it lets a single row stop the job"
_REPLAY = "its values change when a batch is computed again"
_FORMATS = "formats decode and encode whole messages; declare one in the WITH clause"
_ENGINE = "it lists things of the engine, not of the data"
_TIME_TYPE = "the data type TIME is not offered; use TIMESTAMP"
_GEOMETRY = "geometry types are not offered"

DENIED: Final[dict[str, str]] = {
    "reflect": _OUTSIDE,
    "try_reflect": _OUTSIDE,
    "java_method": _OUTSIDE,
    "input_file_name": _FILES,
    "input_file_block_length": _FILES,
    "input_file_block_start": _FILES,
    "current_user": _IDENTITY,
    "session_user": _IDENTITY,
    "user": _IDENTITY,
    "version": _SESSION,
    "current_catalog": _SESSION,
    "current_database": _SESSION,
    "current_schema": _SESSION,
    "current_path": _SESSION,
    "raise_error": _FAILS,
    "assert_true": _FAILS,
    "monotonically_increasing_id": _REPLAY,
    "spark_partition_id": _REPLAY,
    "from_avro": _FORMATS,
    "to_avro": _FORMATS,
    "schema_of_avro": _FORMATS,
    "from_protobuf": _FORMATS,
    "to_protobuf": _FORMATS,
    "collations": _ENGINE,
    "sql_keywords": _ENGINE,
    "python_worker_logs": _ENGINE,
    "measure": "it belongs to metric views, which are not offered",
    "current_time": _TIME_TYPE,
    "make_time": _TIME_TYPE,
    "time": _TIME_TYPE,
    "time_diff": _TIME_TYPE,
    "time_from_micros": _TIME_TYPE,
    "time_from_millis": _TIME_TYPE,
    "time_from_seconds": _TIME_TYPE,
    "time_to_micros": _TIME_TYPE,
    "time_to_millis": _TIME_TYPE,
    "time_to_seconds": _TIME_TYPE,
    "time_trunc": _TIME_TYPE,
    "to_time": _TIME_TYPE,
    "try_to_time": _TIME_TYPE,
    "st_asbinary": _GEOMETRY,
    "st_geogfromwkb": _GEOMETRY,
    "st_geomfromwkb": _GEOMETRY,
    "st_setsrid": _GEOMETRY,
    "st_srid": _GEOMETRY,
    # What other systems and vendors' builds of Spark call the same kind of thing.
    "pg_read_file": _FILES,
    "pg_ls_dir": _FILES,
    "pg_sleep": "it holds up the job without doing work",
    "ai_query": _OUTSIDE,
    "ml_predict": _OUTSIDE,
    "ml_evaluate": _OUTSIDE,
    "read_files": "paths are named in CREATE statements only",
    "read_csv": "paths are named in CREATE statements only",
    "read_json": "paths are named in CREATE statements only",
    "read_parquet": "paths are named in CREATE statements only",
    "read_kafka": "topics are named in CREATE statements only",
    "file_scan": "paths are named in CREATE statements only",
}
