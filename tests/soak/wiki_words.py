"""Pieces of wiki mark-up from which the grammar draws."""

# fmt: off
WORDS = (
    "a", "of", "the", "in", "and", "stone", "river", "U.S.", "e.g.", "3.14", "1,000", "it's", "x_1", "007",
    "élan", "naïve", "Москва", "東京", "ΣΑΣ", "ΑΣ", "ß", "ﬁ", "ŉ", "ǅ", "İ", "ı", "ſ", "K", "e\u0301",
    "\u0301x", "½", "x²", "٣", "Ⅷ", "𝟙", "नमस्ते", "\u200b", "\xa0", "\u2003", "\u3000", "\u2028", "\x85",
    "\x1c", "\t", "…", "—", "–", "“q”", "«g»", "°", "😀", "\ufeff", "\xad", "~~~~", "𐐀", "\uffff",
)
ENTITIES = (
    "&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&ndash;", "&mdash;", "&hellip;", "&Eacute;", "&eacute;",
    "&apos;", "&#65;", "&#x42;", "&#X43;", "&#x0x44;", "&#1_0_0;", "&#1__0;", "&#_1;", "&#x_41;", "&#٦٥;",
    "&#x٤1;", "&#;", "&;", "&#1114111;", "&#1114112;", "&#99999999999;", "&#x110000;", "&#0;", "&#9;",
    "&#10;", "&#123;", "&#91;", "&bogus;", "&Nbsp;", "&thetasym;", "&frac12;", "&amp", "&lt", "& amp;",
    "&sup2;", "&lang;", "&amp;lt;b&amp;gt;", "&lt;b&gt;", "&lt;ref&gt;x&lt;/ref&gt;", "&#60;i&#62;",
    "&amp;amp;", "&amp;nbsp;", "&é;", "&#xFB01;", "&#x1F600;",
)
TYPOGRAPHY = (
    "<<", ">>", "....", ".....", "...", " ,", " .", "( ", " )", " ,:.)]»", "[(« ", ",,", ",.", ",,,.", "  ",
    "   ", "\n", "\n\n", "\n\n\n", "\n...\n", "\n!\n", "\n-\n-\n", "()", "(; )", "« ", " »", " :", "[ ",
    " ]", ". .", "\n \n",
)
BROKEN = (
    "{", "}", "{{", "}}", "{{{", "}}}", "{{{{", "}}}}", "{{{{{", "}}}}}", "[", "]", "[[", "]]", "[[[",
    "]]]", "[[[[", "]]]]", "|", "||", "{|", "|}", "'", "''", "'''", "''''", "'''''", '"', '""', "<", ">",
    "</", "/>", "<b", "&", "=", "==", "|}}", "<!--", "-->", "<ref", "</ref>", "<nowiki>", "</nowiki>",
    "<nowiki/>", "__", ":", ";", "*", "#", "{}", "[]", "{[", "]}", "{{}}", "{{|}}", "{{{}}}", "[[]]",
    "[[|]]", "{{{|}}}", "{[[", "]]}", "}{", "][", "{{{{{1}}}}}", "<>", "<<!-- x -->b>",
)
NAMES = (
    "Infobox x", "infobox x", "ΣΑΣ", "AT&T", "!", "=", "ns:Odd name", "Redirected", "By text", "P:One",
    "P:Other", "Cond", "Rows", "Only", "No", "Verbatim", "Pointer", "ﬁrst", "ßx", "Convert", "Twice",
    "under_score", "safesubst:T1",
)
LOOPS = (
    "Loop", "Ping", "Loop|1={{{1|}}}x",
)
PARAMETERS = (
    "1", "2", "3", "name", "name", "a b", "url", "ΣΑΣ", "", " 1", "01", "x-y",
)
FUNCTIONS = (
    "lc", "uc", "lcfirst", "ucfirst", "urlencode", "urldecode", "int", "LC", "Uc", "lc ", "#lc", "plural",
    "anchorencode", "formatnum", "padleft", "padright", "#len", "#pos", "#rpos", "#sub", "#count",
    "#replace", "#explode", "ns", "fullurl", "#time", "#timel", "#titleparts", "#language", "#rel2abs",
    "#ifexist", "#iferror", "#tag", "#switch", "#if", "#ifeq", "DEFAULTSORT", "PAGENAME", "NAMESPACE",
    "filepath", "#if ", "#invoke", "#expr", "#bogus", "Template", "subst:lc",
)
EXPRESSIONS = (
    "1+2", "7/2", "6/2", "7 mod 3", "-7 mod 3", "-5 mod 3", "10 round 2", "2.567 round 1", "10 div 4",
    "1=1", "1==1", "1 = 2", "1!=2", "1<>2", "1 > 0", "1 < 0", "1>=1", "1/0", "0.1+0.2", "", " ", "2^3",
    "2**3", "2**-1", "not 1", "not 0", "pi", "e", "trunc(2.5)", "trunc 2.5", "abs(-3)", "round(2.5)",
    "floor(2.5)", "1 and 0", "0 or 2", "1e20", "1e3", "1,000", "1,000+1", "007", "0x10", "1_000", "(1+2)*3",
    "((1)", "1)", "--1", "+1", "-1", "1 2", "abc", "model", "5//2", "7%4", "~1", "1 if 1 else 2", "[1]",
    "{}", "'a'", "1.", ".5", "1e400", "5 5", "1 in 2", "1<2<3", "3 & 5", "3|5", "3{{!}}5", "1<<3", "12 - 4",
    "1;2", "٣", "x=1", "1.0", "100000000000000000000", "1e16", "123456789.123", "5 mod 0", "5%0", "5.5%2",
    "True", "None", "1+{{{1|2}}}", "{{T0}}", "1+&nbsp;2", "1&lt;2", "2 * (3 + 4) / 5", "-2**2", "2**3**2",
    "1or 0", "(1,2)", "()", "1+\n2", "#1", "1 is 1", "lambda:1",
)
INVOCATIONS = (
    "#invoke:String|len|abc", "#invoke:String|len| a b ", "#invoke:String|len|s= ΣΑΣ ",
    "#invoke:String|len", "#invoke:String|sub|abcdef|2|4", "#invoke:String|sub|s=abcdef|i=-3",
    "#invoke:String|sub|abcdef|-4|-2", "#invoke:String|sub|abcdef|0|x", "#invoke:String|sub|東京a|2",
    "#invoke:String|sublength|abcdef|2|3", "#invoke:String|sublength|abcdef|i=0|len=2",
    "#invoke:String|pos|abc|-1", "#invoke:String|pos|abc|9", "#invoke:String|pos|target=abc|pos=2",
    "#invoke:String|find|abcabc|b", "#invoke:String|find|abcabc|b|3|1",
    "#invoke:String|find|abcabc|b|plain=1", "#invoke:String|find|abc|[bc]|1|0", "#invoke:String|find||b",
    "#invoke:String|find|abc|z", "#invoke:String|find|abc|(|1", "#invoke:String|replace|aXbX|X|y|1",
    "#invoke:String|replace|aXbX|X|y", "#invoke:String|replace|a1b2|[0-9]|<|plain=0",
    "#invoke:String|replace|a1b2|([a-z])|\\1\\1|1|0",
    "#invoke:String|replace|source=aa|pattern=a|replace=b|count=1", "#invoke:String|rep|ab|3",
    "#invoke:String|nope|x", "#invoke:Roman|main|1999", "#invoke:Roman|main|5000|big",
    "#invoke:Roman|main|0", "#invoke:Roman|main|4.9", "#invoke:Roman|main|x", "#invoke:Roman|main|-3",
    "#invoke:Numero romano|main|14", "#invoke:roman|main|14", "#invoke:Roman|main|4999|N",
    "#invoke:If empty|main||b", "#invoke:If empty|main|it's|\"q\"|x=é", "#invoke:If empty|main",
    "#invoke:convert|convert|5|km", "#Invoke: String | len | [[a]] ", "#invoke:Mod|f|x", "#invoke:String",
    "#invoke:String|len|{{T1}}", "#invoke:Infobox x|main",
)
MAGIC_WORDS = (
    "!", "!", "NAMESPACE", "NAMESPACENUMBER", "PAGENAME", "FULLPAGENAME", "BASEPAGENAME", "SUBPAGENAME",
    "ROOTPAGENAME", "CURRENTYEAR", "CURRENTMONTH", "CURRENTDAY", "CURRENTHOUR", "CURRENTTIME",
    "CURRENTMONTHNAME", "LOCALYEAR", "pagename", " PAGENAME ", "PAGENAME|x", "PAGENAME:x",
    "safesubst:PAGENAME", "SUBST:!", "Currentday", "NUMBEROFARTICLES", "=", "((",
)
LINK_TARGETS = (
    "Foo", "foo (bar)", "Foo#sec", "#sec", " Foo ", "", "a|b", "w:Foo", "W:Foo", "wikt:foo",
    "wiktionary:foo", "fr:Page", ":Category:D", "Category:C", "Special:X", "Media:z.ogg", "2001: A Film",
    "::z", ":fr:Y", ":w:Y", ":", "Foo\n", "ΣΑΣ", "Talk:Y", "Image:b.png", "//x", "/sub", "{{PAGENAME}}",
    "[x", "x]", "''i''", "&amp;", "a]b", "A [[b]] c", "http://x.org y",
)
IMAGE_OPTIONS = (
    "thumb", "left", "200px", "alt=x", "[[inner]]", "A [[b|c]] d", "", "link=", "{{T1}}", "upright=1.2",
)
URLS = (
    "http://x.org", "https://ü.de", "//x.org", "mailto:a@b.c", "HTTP://X.ORG/a?b=c&d=e", "ftp://f", "ſip:x",
    "news:x", "foo:bar", "http://x.org/(a)", 'http://x.org/"q"', "http://a<b>c</b>", "irc://", "http://",
    "urn:x:y", "1", "http://x.org/a.png", "geo:1,2", "tel:1\u3000x", "http://{{T0}}", "http://x.org/[",
    "https://x.org/\x7f", "xmpp:é", "magnet:?x", "http://x.org|y", "sips:a\tb",
)
TAGS = (
    "ref", "ref", "nowiki", "math", "code", "syntaxhighlight", "source", "gallery", "div", "span", "small",
    "sub", "sup", "b", "i", "big", "center", "blockquote", "poem", "pre", "table", "tr", "td", "th",
    "caption", "ul", "li", "ol", "dl", "dt", "dd", "br", "hr", "references", "nobr", "font", "h2", "p", "s",
    "u", "var", "a", "abbr", "cite", "tt", "kbd", "strong", "em", "strike", "timeline", "noinclude",
    "includeonly", "onlyinclude", "imagemap", "indicator", "inputbox", "templatestyles", "section", "form",
    "select", "option", "dir", "menu", "img", "hiero", "bdi", "ſpan", "Kbd", "İ", "categorytree",
    "plaintext", "bogus",
)
SWITCHES = (
    "NOTOC", "TOC", "FORCETOC", "NOEDITSECTION", "DISAMBIG", "notoc", "INDEX", "NOINDEX", "NOCC", "START",
    "END", "X",
)
