"""The tables of NLTK's sentence splitter Punkt (``punkt_tab``), declared as assets with md5s.

Languages have the names that NLTK uses, such as ``english``.
"""

from bertdata.io import storage
from bertdata.io.assets import Asset, AssetSource, check_md5, obtain_asset

ENGLISH = "english"

_SERVER = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/tokenizers/punkt_tab.zip"
_WHEEL = "llama-index-core==0.14.25"
_FOLDER_IN_WHEEL = "llama_index/core/_static/nltk_cache/tokenizers/punkt_tab"
_MD5SUMS = """\
51ddeb018f2ccd4d530d2c6a906b5c96  czech/abbrev_types.txt
e772fc03f054b05c80f7f8d0cdee3ef5  czech/collocations.tab
c1308dc48e76e340c9dbac0c1dbb8688  czech/ortho_context.tab
3fbc00feb02916624ba295e1fc93d133  czech/sent_starters.txt
51ff35dfc073f9e45284e34dec26f5e1  danish/abbrev_types.txt
05dd2d9c7cdd0d04802ae404e824d8bc  danish/collocations.tab
b240981465b89f9b2218168d92a2a2a6  danish/ortho_context.tab
dc5089ecc4dafb8e941664ada0656e64  danish/sent_starters.txt
39df20b0d996798f0f4885adc5a85f99  dutch/abbrev_types.txt
04edcb315a26289ee2a989b530b2b4cd  dutch/collocations.tab
a6433e0f9870672ff038c70012722828  dutch/ortho_context.tab
2919da272924346b131feb811eae2187  dutch/sent_starters.txt
2bf81dc7dbfebd59c26aa9f23ed2729c  english/abbrev_types.txt
c3de69dd6c3c7ee971c8769bee27b35f  english/collocations.tab
a5b1ca76814884181a919d83929478d0  english/ortho_context.tab
086bf65c05ec4f2be7bbe5dabb72b2ec  english/sent_starters.txt
14e0103fe0ce3bc70d87c990491af3d3  estonian/abbrev_types.txt
8ca725387009f52b2e77bcd416d04896  estonian/collocations.tab
078740f55d42aff82891880c11a063ac  estonian/ortho_context.tab
863991956f7d1d0e1c9e254abc2dbe1b  estonian/sent_starters.txt
1fdba8f831ef5282bc0c07b6c032dbbc  finnish/abbrev_types.txt
79ace0d2fc4b10c960e6f6e63eaae4c5  finnish/collocations.tab
a55a03fb69d2f4709adfed65e342fdef  finnish/ortho_context.tab
8749c9500d357cbf2cac7ca3e05775ff  finnish/sent_starters.txt
a232ca9ea6c763102376e2126b76abe4  french/abbrev_types.txt
e0546775139bf33e8beddeeadb5cc260  french/collocations.tab
34c914c2e9fa35200cf6e7225fabe272  french/ortho_context.tab
0d3683c611a1bbb099fe5a6582a03b98  french/sent_starters.txt
3fd4ca9cb42173d44980215d21d55c59  german/abbrev_types.txt
56cddc79d64d0a98a88ee725324e77fc  german/collocations.tab
6209feb5d0ebe4067fd52a21c950c3ed  german/ortho_context.tab
f400e520ff223c5235be54f687a8dbee  german/sent_starters.txt
10c41eeb4c0595701b6c36594fc2f486  greek/abbrev_types.txt
64918b92d71b0bdcccb12271c5323593  greek/collocations.tab
732066e48f89ac960318f5d43be0d179  greek/ortho_context.tab
5642979cf38379eef12fbda65f2b9b33  greek/sent_starters.txt
7e5f8ff8a9b90bb758e7f8ec2983a351  italian/abbrev_types.txt
99f63ad9a06c034430724ac89f0c8cdf  italian/collocations.tab
48119ca8d5e52ef17cbd21ed6983bc70  italian/ortho_context.tab
068955e74785fdd3a55764b3133748cd  italian/sent_starters.txt
5127ba15702c130e3fdcc8f02143f926  malayalam/abbrev_types.txt
3c2fc4393bd880045aa773174cc0b9c9  malayalam/collocations.tab
021f93fde94c552dce9c8fb8a281e58d  malayalam/ortho_context.tab
69095d307624d379c5987efac78d692d  malayalam/sent_starters.txt
d9ea606194e106ae477d971fa8e9aed3  norwegian/abbrev_types.txt
e690bb19e1348ed1d3d3a9d11420877b  norwegian/collocations.tab
216fb4ff37df1af295adf7e4f689da57  norwegian/ortho_context.tab
8779c5e30e0717bab61be1350915df88  norwegian/sent_starters.txt
24a6a94e2d3a3dfeae3d8f4fc396ef77  polish/abbrev_types.txt
271ea81a5de1c19c0f8eb320cd631e7e  polish/collocations.tab
f9570100efb0ef703378f76e53f5e3dd  polish/ortho_context.tab
1fc667907192a7752310cba8c7dff673  polish/sent_starters.txt
d05a77bd1f77b3f88a40e0bf20cccb24  portuguese/abbrev_types.txt
ab0a36ae5906e6cfc07a823664ff47e7  portuguese/collocations.tab
1eee68c539a3c51f67e6b3ddc632642a  portuguese/ortho_context.tab
8b0c15a51ad6c9beedd7fc93f100a6a4  portuguese/sent_starters.txt
785332472f7a17109daba325b869fc67  russian/abbrev_types.txt
d41d8cd98f00b204e9800998ecf8427e  russian/collocations.tab
0accb404ca14d3806148160085aac70d  russian/ortho_context.tab
d41d8cd98f00b204e9800998ecf8427e  russian/sent_starters.txt
65f20c19450b1e5f8373cef0485e78da  slovene/abbrev_types.txt
b13ea25617e559c9d00b93c85d1e4140  slovene/collocations.tab
e3755cc7ab4d5873292f8dd3d8422475  slovene/ortho_context.tab
27ded1d4fbab73fd8a32e16139e8101a  slovene/sent_starters.txt
f8502a38925b6861c80fe1e7871046ba  spanish/abbrev_types.txt
08fc3b6a22f3869996fb2abbcc1f9b32  spanish/collocations.tab
92386fc69d45ae48f9ad9353d651695c  spanish/ortho_context.tab
ff50296a26f4233a833d05df15187e66  spanish/sent_starters.txt
67b10e0544e08c8568535d4a2873c450  swedish/abbrev_types.txt
dcb9b80d0909e19b4e69726c3f903afb  swedish/collocations.tab
4f39afa7c727efe9baeeee2cec28976f  swedish/ortho_context.tab
7c2c497116b479f3abc8a715a8390051  swedish/sent_starters.txt
787b2aaabefe4f50277b192ef1e30754  turkish/abbrev_types.txt
e95114c246cb76d9ec6b89980d4cbbb5  turkish/collocations.tab
fa5918cbe7914550720edf389a7555cc  turkish/ortho_context.tab
76004d1f8cd5a98878edb357066198c9  turkish/sent_starters.txt
"""


def _make_asset(name: str, files: dict[str, str], folder: str = "") -> Asset:
    """Return the asset (a set of files with md5s) of a language's Punkt tables.

    name: name of the asset, which is also its folder in the cache.
    files: md5s by file name.
    folder: sub-directory of ``punkt_tab`` with the files, with a slash at its beginning.
    """
    return Asset(
        name=name,
        files=files,
        sources=(
            AssetSource(url=_SERVER, folder=f"punkt_tab{folder}"),
            AssetSource(requirement=_WHEEL, folder=f"{_FOLDER_IN_WHEEL}{folder}"),
        ),
        nltk_folder=f"tokenizers/punkt_tab{folder}",
    )


def _make_assets() -> dict[str, Asset]:
    """Return an asset for each language in _MD5SUMS."""
    files: dict[str, dict[str, str]] = {}
    for md5, path in map(str.split, _MD5SUMS.splitlines()):
        language, name = path.split("/")
        files.setdefault(language, {})[name] = md5
    return {
        language: _make_asset("punkt" if language == ENGLISH else f"punkt/{language}", own, f"/{language}")
        for language, own in files.items()
    }


PUNKT_ASSETS = _make_assets()
"""The assets with the Punkt tables, by language.

English was supported first, so its tables are in the folder ``punkt`` of the cache. The other languages have
sub-folders such as ``punkt/german``.
"""


def obtain_every_language() -> None:
    """Download the missing tables of all languages, with a single download.

    Raises AssetError if no source works.
    """
    obtain_asset(PUNKT_ASSETS[ENGLISH])
    others = [language for language in PUNKT_ASSETS if language != ENGLISH]
    files = {f"{lang}/{name}": md5 for lang in others for name, md5 in PUNKT_ASSETS[lang].files.items()}
    obtain_asset(_make_asset("punkt", files))


def find_punkt_tables(directory: str | None = None, language: str = ENGLISH) -> dict[str, bytes]:
    """Return a language's Punkt tables by file name.

    directory: local directory or URL to read them from. None: use the cache or another local copy, or
        download them.
    """
    asset = PUNKT_ASSETS[language]
    if directory is None:
        folder = obtain_asset(asset)
        return {name: (folder / name).read_bytes() for name in asset.files}
    tables = {name: storage.read_bytes(storage.join(directory, name)) for name in asset.files}
    remedy = f"put NLTK's punkt_tab tables for {language.capitalize()} there"
    for name, md5 in asset.files.items():
        check_md5(tables[name], md5, storage.join(directory, name), remedy)
    return tables
