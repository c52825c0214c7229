"""Small faults that can be put into a source file, each found by looking at its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from mutants.tree import ROOT

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
# What a log line or a wrong type's message says is for people; no behaviour hangs on it.
_UNINTERESTING_CALLS = ("logger().", "_log.", "log.", "warnings.", "TypeVar", "NewType", "cast")
_UNINTERESTING_FUNCTIONS = {"__repr__", "__str__"}
_SIZES = 10
_UNINTERESTING_NAMES = {"__all__", "__slots__"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: where it is, and what stands there instead."""

    file: str
    line: int
    column: int
    operator: str
    old: str
    new: str
    # The statement as it stands, which names a mutant even when lines move.
    context: str
    # At module level no test runs the line: those that use this name are asked.
    constant: str | None
    start: int
    end: int

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.column} {self.operator}: {_short(self.old)} -> {_short(self.new)}"

    def apply(self, root: Path = ROOT) -> str | None:
        """The file with this fault in it; none if that is no Python."""
        text = (root / self.file).read_bytes()
        mutated = (text[: self.start] + self.new.encode() + text[self.end :]).decode()
        try:
            compile(mutated, self.file, "exec", dont_inherit=True)
        except SyntaxError:
            return None
        return mutated


def mutants(file: str, root: Path = ROOT) -> list[Mutant]:
    """Every mutant of a file, in order."""
    source = (root / file).read_text("utf-8")
    return sorted(_Finder(file, source).found, key=lambda mutant: (mutant.start, mutant.operator, mutant.new))


def all_mutants(root: Path = ROOT) -> list[Mutant]:
    """Every mutant of the source."""
    files = sorted(str(path.relative_to(root)) for path in (root / "src").rglob("*.py"))
    return [mutant for file in files for mutant in mutants(file, root)]


class _Finder:
    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._lines = source.splitlines()
        text = source.encode()
        self._bytes = text
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Mutant] = []
        self._statements(ast.parse(source).body, None, inside=False)

    def _statements(self, body: Iterable[ast.stmt], constant: str | None, *, inside: bool) -> None:
        for statement in body:
            self._statement(statement, constant, inside=inside)

    def _statement(self, node: ast.stmt, constant: str | None, *, inside: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name not in _UNINTERESTING_FUNCTIONS:
                    for default in (*node.args.defaults, *node.args.kw_defaults):
                        self._expression(default, node, node.name)
                    self._statements(node.body, None, inside=True)
                return
            case ast.ClassDef():
                for each in node.body:
                    self._statement(each, node.name, inside=False)
                return
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Import() | ast.ImportFrom() | ast.Assert():
                return
            case ast.Expr(value=ast.Constant()):
                return
            case _:
                pass
        if not inside:
            constant = _assigned(node) or constant
            if constant in _UNINTERESTING_NAMES:
                return
        self._removal(node, constant if not inside else None, inside=inside)
        if not inside and (numbers := _only_numbers(node)) is not None:
            for number in numbers:
                self._add(number, node, "constant", "1" if ast.unparse(number) in {"0", "0.0"} else "0", constant)
            return
        for child in _expressions(node):
            self._expression(child, node, None if inside else constant)
        for name in ("body", "orelse", "finalbody"):
            self._statements(getattr(node, name, []), constant, inside=inside)
        for handler in getattr(node, "handlers", []):
            self._statements(handler.body, constant, inside=inside)
        for case in getattr(node, "cases", []):
            self._expression(case.guard, node, constant)
            self._statements(case.body, constant, inside=inside)

    def _removal(self, node: ast.stmt, constant: str | None, *, inside: bool) -> None:
        if not inside:
            return
        match node:
            case ast.Expr(value=ast.Call() | ast.Await()):
                if not self._is_uninteresting(node.value):
                    self._add(node, node, "removed statement", "pass", constant)
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete():
                self._add(node, node, "removed statement", "pass", constant)
            case ast.Raise(exc=ast.expr()):
                self._add(node, node, "removed raise", "pass", constant)
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
                self._add(value, node, "return None", "None", constant)
            case ast.Break():
                self._add(node, node, "break", "continue", constant)
            case ast.Continue():
                self._add(node, node, "continue", "break", constant)
            case ast.If() | ast.While():
                if not isinstance(node.test, (ast.Compare, ast.UnaryOp, ast.Constant)):
                    self._add(node.test, node, "condition", f"not ({ast.unparse(node.test)})", constant)
            case _:
                pass

    def _is_uninteresting(self, node: ast.expr) -> bool:
        call = node.value if isinstance(node, ast.Await) else node
        return isinstance(call, ast.Call) and ast.unparse(call.func).startswith(_UNINTERESTING_CALLS)

    def _expression(self, node: ast.expr | None, statement: ast.stmt, constant: str | None) -> None:
        if node is None or self._is_uninteresting(node) or isinstance(node, ast.JoinedStr):
            return
        for kind, new in _changes(node):
            self._add(node, statement, kind, ast.unparse(new), constant)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, statement, constant)
            elif isinstance(child, ast.keyword):
                self._expression(child.value, statement, constant)
            elif isinstance(child, ast.comprehension):
                self._expression(child.iter, statement, constant)
                for condition in child.ifs:
                    self._expression(condition, statement, constant)

    def _add(self, node: ast.expr | ast.stmt, statement: ast.stmt, kind: str, new: str, constant: str | None) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        if isinstance(node, ast.expr) and kind not in {"return None", "condition"}:
            new = f"({new})" if not isinstance(node, ast.Constant) else new
        context = " ".join(self._lines[statement.lineno - 1].split())
        old = self._bytes[start:end].decode()
        self.found.append(
            Mutant(self._file, node.lineno, node.col_offset, kind, old, new, context, constant, start, end)
        )


def _expressions(node: ast.stmt) -> list[ast.expr | None]:
    """The expressions of a statement itself, without annotations and without what stands inside of its blocks."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Return() | ast.Expr():
            return [node.value]
        case ast.If() | ast.While():
            return [node.test]
        case ast.For() | ast.AsyncFor():
            return [node.iter]
        case ast.With() | ast.AsyncWith():
            return [item.context_expr for item in node.items]
        case ast.Match():
            return [node.subject]
        case _:
            return []


def _only_numbers(node: ast.stmt) -> list[ast.expr] | None:
    """What the constants of a module or class are, if they are nothing but numbers: limits, sizes and times. How large
    one is is a matter of taste, within wide bounds; that it is there is not."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return None
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return values if values and all(map(_is_number, values)) else None


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.BinOp():
            return _is_number(node.left) and _is_number(node.right)
        case ast.UnaryOp(op=ast.USub()):
            return _is_number(node.operand)
        case _:
            return False


def _changes(node: ast.expr) -> Generator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                changed = copy.deepcopy(node)
                changed.ops[at] = _COMPARISONS[type(op)]()
                yield "comparison", changed
        case ast.BoolOp():
            changed = copy.deepcopy(node)
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", changed
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node.operand
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node):
            changed = copy.deepcopy(node)
            changed.op = _ARITHMETIC[type(node.op)]()
            yield "arithmetic", changed
        case ast.IfExp():
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() as value):
            # A small number counts, a larger one is a size.
            yield "constant", ast.Constant(value + 1 if value < _SIZES else 0)
        case ast.Constant(value=float() as value):
            # How long something is waited for is a matter of taste; that it is waited for is not.
            yield "constant", ast.Constant(0.0 if value else 1.0)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _]):
            # Which of two numbers comes first makes no difference.
            pass
        case ast.Call() if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            changed = copy.deepcopy(node)
            changed.args[0], changed.args[1] = changed.args[1], changed.args[0]
            if ast.dump(changed) != ast.dump(node):
                yield "swapped arguments", changed
        case _:
            pass


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, (ast.Constant, ast.JoinedStr)) and not isinstance(getattr(part, "value", ""), (int, float))
        for part in (node.left, node.right)
    )


def _assigned(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), *_])]):
            return name
        case _:
            return None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"
