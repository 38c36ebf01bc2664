"""Records what CPython answers to a few thousand expressions, for the table that ours is held to:

    python3 scripts/python-answers.py packages/text/src/python/answers.jsonl.gz

Each line is {"expression", "before"?, and "answer" (the repr) or "error" (the class)}. `before` holds
statements that run first. The answers are CPython 3.11's; another version is refused.
"""

import datetime
import gzip
import itertools
import json
import sys

TEXTS = ["", "a", "ab", "abcabc", " a b  c ", "x\ny", "a\r\nb\rc\n", "Hello World", "hello wORLD", "ǆungla ﬁne", "ﬁne",
         "straße", "ΑΣ", "ΌΣΟΣ ΣΑΣ", "İi", "ŉa", "ᾳx", "\x1ca\x85b\u2028c", "\t1\t22", "a,b,,c", "  ", "-42", "+7", "٣", "½",
         "²", "一", "🎉x🎉", "é", "e\u0301", "a_b1", "1a", "they're bill's", "AbC", "{}", "%s", "ꭰꮿ", "ა", "ß", "ẞ", "ı", "ʰ"]
SUBS = ["", "a", "b", "bc", "ab", " ", "\n", ",", "x", "🎉", "ß"]
WINDOWS = ["", ",0", ",1", ",-1", ",2,4", ",None,3", ",-3,-1", ",10", ",3,1", ",1,None", ",-100,100"]
NUMBERS = ["0", "1", "-1", "2", "3", "-3", "7", "-7", "10", "255", "-255", "1234567", "2**31", "2**53", "2**53+1", "2**64",
           "-2**64", "10**20", "True", "False", "0.0", "-0.0", "0.5", "1.5", "2.5", "-2.5", "0.1", "1.1", "2.675", "1e-7",
           "1e16", "1e22", "123456.789", "-123456.789", "1e300", "float('inf')", "float('-inf')", "float('nan')", "3.0", "1/3"]
SOME = ["0", "1", "-1", "3", "-7", "255", "1234567", "2**64", "True", "0.0", "-0.0", "2.5", "-2.675", "1e-7", "1e16", "123456.789", "float('inf')", "float('nan')"]


def texts():
    for text in TEXTS:
        for name in ("upper lower title capitalize swapcase casefold strip lstrip rstrip split rsplit splitlines isalpha isdecimal "
                     "isdigit isnumeric isalnum isspace isascii isprintable isidentifier islower isupper istitle expandtabs").split():
            yield f"{text!r}.{name}()"
        yield f"len({text!r})"
        yield f"repr({text!r})"
        yield f"ascii({text!r})"
        yield f"{text!r}.splitlines(True)"
        yield f"list({text!r})"
        yield f"{text!r}[::-1]"
        yield f"sorted({text!r})"
    for text in ["", "a", "abcabc", " a b  c ", "x\ny", "a,b,,c", "🎉x🎉", "straße"]:
        for sub in SUBS:
            for name in "count find rfind index rindex startswith endswith".split():
                windows = WINDOWS if text in ("abcabc", "🎉x🎉") and sub in ("", "b", "🎉") else ["", ",1"]
                for window in windows:
                    yield f"{text!r}.{name}({sub!r}{window})"
            for name in "partition rpartition removeprefix removesuffix strip lstrip rstrip __contains__ split rsplit".split():
                if name == "__contains__":
                    yield f"{sub!r} in {text!r}"
                else:
                    yield f"{text!r}.{name}({sub!r})"
            for limit in (0, 1, 2, -1):
                yield f"{text!r}.replace({sub!r}, '-', {limit})"
                if sub:
                    yield f"{text!r}.split({sub!r}, {limit})"
                    yield f"{text!r}.rsplit({sub!r}, maxsplit={limit})"
            yield f"{text!r}.replace({sub!r}, '<>')"
        for limit in (0, 1, 2, 5):
            yield f"{text!r}.split(None, {limit})"
            yield f"{text!r}.rsplit(None, {limit})"
            yield f"{text!r}.split(maxsplit={limit})"
        for width in (0, 1, 5, 8, 9):
            for name in "center ljust rjust zfill".split():
                yield f"{text!r}.{name}({width})"
            for name in "center ljust rjust".split():
                yield f"{text!r}.{name}({width}, '*')"
                yield f"{text!r}.{name}({width}, '🎉')"
    yield from [
        "'-42'.zfill(6)", "'+7'.zfill(5)", "'--1'.zfill(6)", "'a'.center(4, 'xy')", "'a'.ljust(3.0)", "'a'.ljust('3')",
        "'\\t'.expandtabs(4)", "'a\\tb\\nc\\td'.expandtabs(4)", "'a\\tb'.expandtabs(tabsize=2)", "'a\\tb'.expandtabs(0)",
        "'🎉🎊'.strip('🎊')", "'🎉a🎉'.strip('🎉')", "'abc'.strip('cab')", "'abc'.strip(None)", "'abc'.strip(1)",
        "'abc'.startswith(('x', 'a'))", "'abc'.startswith(())", "'abc'.endswith(('x', 'bc'), 1)", "'abc'.startswith(['a'])",
        "'abc'.startswith('b', 1)", "'abc'.startswith('b', True)", "'abc'.startswith(1)", "'abc'.endswith('', 10)", "''.startswith('', 1)",
        "','.join(['a', 'b'])", "','.join([])", "','.join('abc')", "','.join(['a', 1])", "','.join({'a': 1, 'b': 2})", "''.join(('x',))", "','.join(1)",
        "','.join(x.upper() for x in 'ab')", "'abc'.translate({97: 'x', 98: None, 99: 100})", "'abc'.translate(str.maketrans('ab', 'xy'))",
        "'abc'.translate(str.maketrans('ab', 'xy', 'c'))", "'abc'.translate(str.maketrans({'a': '1', 98: '2'}))", "str.maketrans('ab', 'x')",
        "'a' 'b'", "'a' + 1", "1 + 'a'", "'a' * 3", "3 * 'a'", "'a' * -1", "'a' * 1.5", "'a' * 'b'", "'a' * True", "'a' - 'b'", "-'a'",
        "'abc'.split('')", "'abc'.rsplit('')", "'abc'.partition('')", "'a b'.split(1)", "'abc'.count('b', None, 2)", "'abc'.index('z')", "'abc'.rindex('z')",
        "'abc'.replace('b', 1)", "'abc'.replace(1, 'b')", "'aaa'.replace('a', 'b', count=1)", "'abc'.nothing()", "'x' < 'y'", "'x' < 1", "'a' == 1",
        "'ab' < 'abc'", "'🎉' < '\\uffff'", "'Z' < 'a'", "min('b', 'a')", "max('hello')", "'abc'[1]", "'abc'[-1]", "'abc'[3]", "'abc'['a']", "'abc'[1.0]", "'abc'[True]",
        "'🎉x🎉'[1]", "'🎉x🎉'[-1]", "'🎉x🎉'[1:]", "'a\\x00b'", "'\\x7f\\x80\\xa0\\xad\\u200b\\ue000\\ufeff'", "'\"'", "\"'\"", "'\\'\"'", "'\\\\'", "'\\N'", "r'\\n'", "'\\101\\x41\\u0041\\U00000041'",
        "str(1)", "str(1.0)", "str(None)", "str(True)", "str([1, 'a'])", "str({'a': 1})", "str((1,))", "str()", "str('x')", "repr(())", "repr([])", "repr({})", "repr(set())", "repr({1})", "repr((1, 2.0, 'x', None))",
        "chr(8364)", "ord('€')", "ord('🎉')", "ord('ab')", "ord('')", "chr(-1)", "chr(0x110000)",
        "'a' in ['a']", "1 in 'abc'", "None in [None]", "'k' in {'k': 1}", "[] in {}", "1.0 in [1]", "True in {1: 2}",
        "'Hello'.encode('utf-8').hex()", "'é'.encode().hex()", "'abc'.upper(1)", "'abc'.split(sep=',', maxsplit=1)", "'a,b,c'.split(sep=',', maxsplit=1)", "'abc'.split(seb=',')", "'abc'.find()", "'abc'.find('a', '1')",
    ]


def slices():
    bounds = ["", "0", "1", "-1", "2", "-2", "10", "-10"]
    for subject in ["'abcdef'", "[1, 2, 3, 4]", "(1, 2, 3)", "'🎉x🎉y'"]:
        for low, high, step in itertools.product(bounds[::2] + ["-2"], bounds[1::2], ["", "1", "-1", "2", "-2"]):
            yield f"{subject}[{low}:{high}:{step}]"
    yield from ["[1,2][::0]", "[1,2]['a':]", "{}[1:2]", "5[1:2]", "[1,2,3][None:None]", "'abc'[::-1]", "[1,2,3][True:]", "list(range(10))[2:8:3]", "[1,2,3][10**20:]", "[1,2,3][:-10**20]", "range(10)[2:5][0]"]


def numbers():
    for operator in "+ - * / // % **".split():
        for left, right in itertools.product(SOME, SOME):
            if operator == "**" and (right in ("255", "1234567", "2**64", "1e16", "123456.789") or left == "2**64" and right == "255"):
                continue
            yield f"({left}) {operator} ({right})"
    for operator in "== < <= > >= !=".split():
        for left, right in itertools.product(["0", "1", "True", "2**53", "2**53+1", "1.0", "float(2**53)", "float('nan')", "float('inf')", "'a'", "None", "[1]", "(1,)"], repeat=2):
            yield f"{left} {operator} {right}"
    for number in NUMBERS:
        yield f"repr({number})"
        yield f"-({number})"
        yield f"+({number})"
        yield f"~({number})"
        yield f"abs({number})"
        yield f"int({number})"
        yield f"float({number})"
        yield f"bool({number})"
        yield f"not ({number})"
        yield f"round({number})"
        for digits in ("0", "1", "2", "-1", "-2", "None", "20", "400"):
            yield f"round({number}, {digits})"
        yield f"({number}).is_integer()"
        yield f"str({number})"
    for number in ["0", "1", "-1", "5", "255", "2**70", "True"]:
        for name in "bit_length bit_count conjugate as_integer_ratio".split():
            yield f"({number}).{name}()"
    for number in ["0.0", "0.1", "-2.5", "1e300", "5e-324", "float('inf')", "float('nan')"]:
        for name in "as_integer_ratio conjugate is_integer".split():
            yield f"({number}).{name}()"
    for left, right in itertools.product(["0", "1", "-1", "6", "-7", "True", "2**70"], ["0", "1", "3", "-2", "False", "65"]):
        for operator in "& | ^ << >>".split():
            yield f"({left}) {operator} ({right})"
    for left, right in itertools.product(["7", "-7", "7.5", "-7.5", "0", "2**64"], ["2", "-2", "0", "0.5", "-0.5"]):
        yield f"divmod({left}, {right})"
    yield from ["round(0.5)", "round(1.5)", "round(2.5)", "round(-0.5)", "round(2.675, 2)", "round(1.005, 2)", "round(15, -1)", "round(25, -1)", "round(-15, -1)", "round(1e22)", "round('a')", "round(1.5, 'a')", "round(1.5, 1.0)",
                "round(number=1.25, ndigits=1)", "pow(2, 10)", "pow(2, -1)", "pow(2.0, 0.5)", "2 ** -1", "(-8) ** (1/3)", "0 ** 0", "0.0 ** -1", "10 ** 400 / 3", "1e308 * 10", "2.0 ** 10000", "1 // 0", "1.0 // 0", "1 % 0", "1.0 % 0", "1 / 0", "0.1 + 0.2",
                "sum([1, 2, 3])", "sum([])", "sum([1, 2.5])", "sum([[1], [2]], [])", "sum(['a'])", "sum([1], 5)", "sum((1, True))", "max(1, 2.0)", "max(1, 1.0)", "max([1, 1.0])", "min([3, 1, 2])", "min([])", "max([], default=7)", "max('b', 'abc', key=len)", "max(1, 'a')", "min(1)",
                "0x1F", "0b101", "0o17", "1_000", "1e3", ".5", "5.", "0xff + 1", "1 if 0 else 2", "1 and 0", "0 or 'x'", "not []", "1 < 2 < 3", "1 < 3 < 2", "1 == 1.0 == True", "1 is None", "None is None"]
    for text in ["", " 12 ", "-12", "+3", "1_000", "1__0", "0x1f", "12a", "٣٤", "1.5", "0b11", "９", "--1", "1e3", "999999999999999999999"]:
        yield f"int({text!r})"
        yield f"float({text!r})"
        for base in ("0", "2", "8", "16", "36", "37"):
            yield f"int({text!r}, {base})"
    for text in ["inf", "-Infinity", "nan", "1e400", "1_0.5_0", "._5", ".5", "5.", "1e", "e1", ".", " 1.5\n", "infinit", "0x1p3"]:
        yield f"float({text!r})"


def specifications():
    for number in ["0", "5", "-5", "255", "1234567", "-1234567", "10**20", "True"]:
        for spec in ["", "d", "5d", "<5", ">5d", "^7", "=+8", "+", " d", "-", "08d", "08", "x", "X", "#x", "#X", "b", "#b", "o", "#o", "010x", "#010x", ",", "_", "12,", "012,", "08,", "_x", "_b", ",x", "c", "e", ".2e", "f", ".1f", "g", "%", ".0%", "n", "s", "5s", ".2",
                     "*^10", "🎉<6", "z", "z.1f", "+,d", "015,.2f", "#d", "2", "q", "1$", "10.3d"]:
            yield f"format({number}, {spec!r})"
    for number in ["0.0", "-0.0", "0.5", "2.5", "-2.675", "1234567.891", "-1234567.891", "1e-7", "1e22", "1e300", "float('inf')", "float('-inf')", "float('nan')", "0.000123456", "123456.0", "1e16"]:
        for spec in ["", "f", ".0f", ".1f", ".2f", ".3f", "10.2f", "<10.1f", "^12.2f", "+.1f", " .1f", "010.2f", ",.2f", "_.2f", "015,.2f", "012,", "e", ".0e", ".3e", "E", "g", ".3g", ".10g", "G", "#g", "#.0f", "#.3g", "%", ".1%", ".2", ".5", ".0", "n", "d", "x", "s", "c", "z.0f", "F", ",", "*>12", "=12", "+012.1f", ".20f"]:
            yield f"format({number}, {spec!r})"
    for text in ["", "a", "abcdef", "🎉x", "é"]:
        for spec in ["", "s", "5", "<5", ">5", "^5", "^6", "*^7", ".2", "5.2", "05", "=5", "+", ",", "d", "#", "_", ".0", "🎉>4", "10s", ".3s", "z", "f"]:
            yield f"format({text!r}, {spec!r})"
    for value in ["None", "[1]", "{}", "(1,)"]:
        for spec in ["", "5", "s"]:
            yield f"format({value}, {spec!r})"
    yield from [f"f{body!r}" for body in ["{1}", "{1:3}", "{'a':>4}", "{'a'!r:>6}", "{[1, 2]}", "{1.5:.2f}", "{1+1}", "{{}}", "a{{b}}c{1}", "{'x' 'y'}", "{3.14159:{'.'}{2}f}", "{None}", "{True:d}", "{'é'!a}", "{1!s:>3}", "{(1, 2)}", "{'a' if 1 else 'b'}"]]
    yield from ["'{!r:>6}'.format('a')", "'{0[a]}'.format({'a': 1})", "'{0[1]}'.format([5, 6])", "'{0.real}'.format(5)", "'{a[b][0]}'.format(a={'b': [7]})", "'{} {}'.format(1, 2)", "'{1} {0}'.format(1, 2)", "'{0} {}'.format(1, 2)", "'{} {0}'.format(1, 2)",
                "'{:{}}'.format('a', 5)", "'{:{w}.{p}f}'.format(3.14159, w=8, p=2)", "'{a}'.format(a=1)", "'{a}'.format()", "'{}'.format()", "'{2}'.format(1)", "'{{}}'.format()", "'{'.format()", "'}'.format()", "'{a'.format(a=1)", "'{!s}'.format('x')", "'{!a}'.format('é')",
                "'{!x}'.format(1)", "'{:d}'.format('a')", "'{:>5}'.format('a')", "'{:,}'.format(1234567)", "'{:08.3f}'.format(-3.14159)", "'{0[-1]}'.format({'-1': 2})", "'{0.x}'.format(1)", "'{0[5]}'.format([1])", "'{:%}'.format(0.25)", "'{: }'.format(5)", "'{:=+5}'.format(3)",
                "'{a.b}'.format(a=1)", "'{}{}'.format('a')", "'{0}{0}'.format('a')", "'{:s}'.format(1)", "'{:5}|{:<5}|{:^5}'.format(1, 2, 3)", "'{:5}|{:>5}'.format('a', 'b')", "'{x!r}'.format(x='q')", "'{:.3}'.format('abcdef')", "'{:.3}'.format(3.14159)", "'{0:{1}}'.format(5, '>4')",
                "'{a}'.format_map({'a': 1})", "'{b}'.format_map({'a': 1})", "'%(a)s' % {'a': 1}"]


def percents():
    for value in ["0", "5", "-5", "255", "2.5", "-2.675", "1e10", "True", "10**20", "'a'", "None", "[1]", "'é'", "float('nan')"]:
        for spec in ["%s", "%r", "%a", "%d", "%i", "%5d", "%-5d|", "%05d", "%+d", "% d", "%x", "%X", "%#x", "%o", "%#o", "%f", "%.2f", "%8.3f", "%-8.1f|", "%+.1f", "%08.2f", "%e", "%.2E", "%g", "%G", "%#g", "%c", "%5s", "%-5s|", "%.1s", "%u", "%.3d", "%q", "%5%", "%"]:
            yield f"{spec!r} % ({value},)"
    yield from ["'%s' % 1", "'%s %s' % (1, 2)", "'%s' % (1, 2)", "'%s %s' % (1,)", "'%%' % ()", "'%s' % ()", "'%s' % [1]", "'%(a)s %(b)d' % {'a': 'x', 'b': 2}", "'%(c)s' % {'a': 1}", "'%(a)s' % 1", "'%*d' % (5, 1)", "'%-*d|' % (5, 1)", "'%.*f' % (2, 3.14159)", "'%c' % 'ab'", "'%c' % 128512",
                "'x' % 1", "'x' % {}", "'x' % []", "'%d' % '5'", "'%d' % 2.9", "'%x' % 2.9", "'%s%%' % 5", "'%5.1f%%' % 12.34", "'%ld' % 5", "'%s' % {'a': 1}", "'%s' % None", "'%(a)s' % {'a': (1, 2)}", "'%(a)5.1f|' % {'a': 2.25}"]


def containers():
    yield from ["[1, 2] + [3]", "[1] * 3", "[1] + (2,)", "(1,) + (2,)", "(1,) * 2", "[] == ()", "[1, 2] < [1, 3]", "[1] < [1, 0]", "(1, 2) < (1, 'a')", "[1, 'a'] == [1, 'a']", "{'a': 1} == {'a': 1.0}", "{1: 2} == {True: 2}", "[1, 2, 3].index(2)", "[1, 2].index(5)", "[1, 2, 1].index(1, 1)", "[1, 1, 2].count(1)", "[1, True, 1.0].count(1)",
                "(1, 2, 1).count(1)", "(1, 2).index(2)", "(1, 2).index(3)", "[3, 1, 2].copy()", "len([1, 2])", "len({})", "len((1,))", "len(5)", "len({1, 2})", "sorted([3, 1, 2])", "sorted([3, 1, 2], reverse=True)", "sorted(['b', 'A', 'c'], key=str.lower)", "sorted(['bb', 'a', 'ccc'], key=len, reverse=True)", "sorted([1, 'a'])",
                "sorted([(1, 'b'), (1, 'a'), (0, 'z')], key=lambda pair: pair[0])", "sorted({'b': 1, 'a': 2})", "sorted('hello')", "sorted([True, 0, 2.5])", "list(reversed([1, 2, 3]))", "list(enumerate('ab'))", "list(enumerate('ab', 1))", "list(enumerate(['x'], start=5))", "list(zip([1, 2], 'ab'))", "list(zip([1, 2, 3], [4]))", "list(zip())",
                "list(range(5))", "list(range(2, 8, 2))", "list(range(5, 0, -2))", "list(range(0))", "list(range(1, 1))", "range(5)[2]", "len(range(5))", "range(3)", "range(0, 10, 3)", "3 in range(5)", "list(range(1.5))", "list(range('a'))", "list(range(1, 5, 0))", "any([])", "any([0, 1])", "all([])", "all([1, 0])", "any('')", "all(x > 0 for x in [1, 2])", "any(x > 5 for x in range(3))",
                "isinstance(1, int)", "isinstance(True, int)", "isinstance(1, bool)", "isinstance(1.0, int)", "isinstance(1.0, float)", "isinstance('a', str)", "isinstance('a', (int, str))", "isinstance([], list)", "isinstance({}, dict)", "isinstance((), tuple)", "isinstance(set(), set)", "isinstance(None, object)", "isinstance(1, float)", "isinstance(1, 5)",
                "list({'a': 1, 'b': 2})", "list({'a': 1}.items())", "list({'a': 1}.keys())", "list({'a': 1}.values())", "{'a': 1}.get('a')", "{'a': 1}.get('b')", "{'a': 1}.get('b', 5)", "{'a': None}.get('a', 5)", "{1: 'x'}.get(True)", "{1: 'x'}[1.0]", "{'a': 1}['b']", "{}[[]]", "{[]: 1}", "{(1, [2]): 3}", "{**{'a': 1}, 'b': 2}", "{'a': 1} | {'b': 2}", "{'a': 1} | {'a': 2}", "dict(a=1)", "dict([('a', 1)])", "dict({'a': 1}, b=2)", "dict([1])", "dict(['ab'])",
                "{'a': 1}.items()", "{'a': 1}.keys()", "{'a': 1}.values()", "{'a': 1}.copy()", "{1: 'a', True: 'b', 1.0: 'c'}", "{0: 1, False: 2, -0.0: 3}", "list((1, 2))", "tuple([1])", "tuple('ab')", "set([1, 1])", "{1, 1.0, True}", "sorted({3, 1, 2})", "list({1: 2})", "list(5)", "[*[1], 2]", "(*'ab',)", "[x * 2 for x in range(3)]", "[x for x in range(5) if x % 2]", "{x: x * x for x in range(3)}", "sorted({x % 2 for x in range(5)})",
                "[(x, y) for x in [1, 2] for y in 'ab']", "[x for row in [[1], [2, 3]] for x in row]", "list(map(str, [1, 2]))", "list(filter(None, [0, 1, 2]))", "(lambda x, y=2: x + y)(1)", "next(iter([5]))", "next(iter([]), 'none')", "next(iter([]))", "[1, [2]] * 2", "[[]] * 2", "[1, 2, 3][1]", "[1, 2][-1]", "[1, 2][5]", "[1]['a']", "(1, 2)[0]", "(1,)[2]", "None[0]", "5[0]", "{'a': {'b': 1}}['a']['b']",
                "1 in [1, 2]", "'a' not in 'abc'", "(1, 2) in [(1, 2)]", "1 in 5", "[1, 2] == [1.0, 2.0]", "(1,) == [1]", "None == 0", "[] or {}", "bool([])", "bool({})", "bool(())", "bool('')", "bool(' ')", "bool(0.0)", "bool([0])", "str([None, True, 1.0, 'a\\n'])", "str({'a': [1, {'b': ()}]})", "str({1: 2, 'x': (3,)})", "[1, 2, 3] != [1, 2]", "{1, 2} == {2, 1}",
                "{1, 2} & {2, 3}", "sorted({1, 2} | {3})", "{1, 2} - {1}", "sorted({1, 2} ^ {2, 3})", "{1} | [2]", "{'a': 1} | [2]", "[] + 'a'", "() + []", "[1] * 'a'", "[1] - [1]", "{} + {}", "None + 1", "-[1]", "sum({1: 2, 3: 4})", "min({'b': 1, 'a': 2})", "max([[1, 2], [1, 3]])", "[] < 1", "{} < {}", "None < None", "abs(-5)", "abs('a')", "callable(len)", "type(1).__name__", "type('a') == str", "type([]).__name__", "hasattr('a', 'upper')", "hasattr(1, 'upper')", "getattr('a', 'nope', 3)"]
    for before, after in [("x = [3, 1, 2]; x.sort()", "x"), ("x = [3, 1, 2]; x.sort(reverse=True)", "x"), ("x = ['b', 'A']; x.sort(key=str.lower)", "x"), ("x = [1]; x.append(2)", "x"), ("x = [1]; x.extend('ab')", "x"), ("x = [1]; x += (2, 3)", "x"), ("x = [1, 2]; x.insert(0, 9)", "x"), ("x = [1, 2]; x.insert(-1, 9)", "x"), ("x = [1, 2]; x.insert(10, 9)", "x"),
                          ("x = [1, 2, 3]; y = x.pop()", "(x, y)"), ("x = [1, 2, 3]; y = x.pop(0)", "(x, y)"), ("x = [1, 2, 3]; y = x.pop(-2)", "(x, y)"), ("x = []", "x.pop()"), ("x = [1]", "x.pop(5)"), ("x = [1, 2, 1]; x.remove(1)", "x"), ("x = [1]", "x.remove(5)"), ("x = [1, 2]; x.reverse()", "x"), ("x = [1]; x.clear()", "x"), ("x = [1, 2, 3]; del x[1]", "x"), ("x = [1, 2]; x[0] = 'a'", "x"), ("x = [1, 2]; x[-1] = 'a'", "x"),
                          ("x = {'a': 1}; x.update({'b': 2})", "x"), ("x = {'a': 1}; x.update(b=2)", "x"), ("x = {'a': 1}; x.update([('a', 5)])", "x"), ("x = {'a': 1}; y = x.pop('a')", "(x, y)"), ("x = {'a': 1}", "x.pop('b')"), ("x = {'a': 1}", "x.pop('b', 3)"), ("x = {'a': 1}; y = x.setdefault('a', 5)", "(x, y)"), ("x = {}; y = x.setdefault('a', [])", "(x, y)"), ("x = {}; y = x.setdefault('a')", "(x, y)"), ("x = {'a': None}; y = x.setdefault('a', 5)", "(x, y)"),
                          ("x = {'a': 1, 'b': 2}; y = x.popitem()", "(x, y)"), ("x = {}", "x.popitem()"), ("x = {'a': 1}; x.clear()", "x"), ("x = {'a': 1}; del x['a']", "x"), ("x = {'a': 1}; x['b'] = 2; x['a'] = 3", "x"), ("x = {1: 'a'}; x[True] = 'b'", "x"), ("x = 5; x //= 2", "x"), ("x = 'a'; x *= 3", "x"), ("x = 5; x **= 2; x -= 1; x %= 7", "x"), ("x, y = 1, 2; x, y = y, x", "(x, y)"), ("x = 1; x += 'a'", "x"), ("x = 6; x |= 1; x &= 5; x <<= 2", "x"), ("a, *b = [1, 2, 3]", "(a, b)"), ("x = [1, 2]; x *= 2", "x")]:
        yield after, before


def times():
    before = "from datetime import datetime, date, timedelta; t = datetime(2024, 5, 15, 15, 4, 5); d = date(2024, 1, 3)"
    for code in "a A b B d e m y Y C H I k l M S p P j w u U W V G g D F T R c x X % n t h f".split():
        yield f"t.strftime('%{code}')", before
        yield f"d.strftime('%{code}')", before
    yield from [(expression, before) for expression in [
        "str(t)", "str(d)", "repr(t)", "repr(d)", "t.isoformat()", "d.isoformat()", "t.isoformat(' ')", "t.date()", "t.weekday()", "t.year", "t.hour", "d.month", "t + timedelta(days=1)", "t - timedelta(hours=30)", "d + timedelta(days=30)", "(t - datetime(2024, 5, 1)).days", "(t - datetime(2024, 5, 1)).seconds", "(d - date(2023, 12, 31)).days", "t > datetime(2024, 1, 1)", "d < date(2024, 1, 2)", "t == datetime(2024, 5, 15, 15, 4, 5)", "t < d", "t == d",
        "datetime.strptime('2024-05-15', '%Y-%m-%d')", "datetime.strptime('05/15/24 03:04 PM', '%m/%d/%y %I:%M %p')", "datetime.strptime('15 May 2024', '%d %B %Y')", "datetime.strptime('May 5, 2024', '%b %d, %Y')", "datetime.strptime('Wed 2024', '%a %Y')", "datetime.strptime('2024-13-01', '%Y-%m-%d')", "datetime.strptime('2024-02-30', '%Y-%m-%d')", "datetime.strptime('2024-05-15x', '%Y-%m-%d')", "datetime.strptime('x', '%Q')", "datetime.strptime('12:00 AM', '%I:%M %p').hour", "datetime.strptime('12:30 PM', '%I:%M %p').hour",
        "datetime.strptime('2024-05-15T15:04:05', '%Y-%m-%dT%H:%M:%S')", "datetime.fromisoformat('2024-05-15')", "datetime.fromisoformat('2024-05-15T15:04:05')", "datetime.fromisoformat('2024-05-15 15:04')", "date.fromisoformat('2024-05-15')", "datetime.fromisoformat('x')", "date.fromisoformat('2024-02-30')", "datetime(2024, 2, 30)", "datetime(2024, 13, 1)", "date(2024, 2, 29)", "date(2023, 2, 29)", "t.replace(hour=1)", "d.replace(year=2020)", "f'{t:%Y-%m-%d}'", "f'{d:%d %b}'", "'{:%H:%M}'.format(t)", "t.strftime('%Y-%m-%d %H:%M:%S')", "d.strftime('%B %d, %Y')", "t.strftime('%-d/%-m')", "t.strftime('%j %U %W')", "timedelta(days=1, hours=2).days", "timedelta(hours=49).days", "timedelta(days=-1, hours=1).days", "timedelta(minutes=90).seconds", "timedelta(weeks=1).days", "d.weekday()", "t.strftime('100%%')", "str(timedelta(days=1, hours=2))", "timedelta(days=1) == timedelta(hours=24)", "timedelta(days=1).total_seconds()"]]


def rows():
    for item in itertools.chain(texts(), slices(), numbers(), specifications(), percents(), containers(), times()):
        yield item if isinstance(item, tuple) else (item, "")


def answer(expression, before):
    names = {}
    try:
        exec(before, names)
        return {"answer": repr(eval(expression, names))}
    except Exception as error:
        return {"error": type(error).__name__}


def main():
    if sys.version_info[:2] != (3, 11):
        sys.exit(f"The answers are those of CPython 3.11, this is {sys.version.split()[0]}.")
    seen = set()
    lines = []
    for expression, before in rows():
        if (expression, before) in seen:
            continue
        seen.add((expression, before))
        row = {"expression": expression, **({"before": before} if before else {}), **answer(expression, before)}
        lines.append(json.dumps(row, ensure_ascii=True))
    with open(sys.argv[1], "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(("\n".join(lines) + "\n").encode())
    print(f"{len(lines)} expressions")


main()
