"""Every place of a parsed function body where a small change makes a wrong kernel (pure).

In: the tree-sitter node of a body and which of its rows count. Out: Changes, in byte offsets of that node's text, and
the rows that hold a statement which the parser did not understand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from reviewbot.generate import mutant_rules as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

_CAPS = re.compile(rb"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_DEPTH_MAX = 150  # foreign text must not exhaust the stack; kernel code comes nowhere near
_INERT = frozenset({"string_literal", "concatenated_string", "char_literal", "comment", "offsetof_expression"})


class Shape(StrEnum):
    """What the changed text is: it decides how it can be chosen at run time."""

    VALUE = "value"
    CONDITION = "condition"
    STATEMENT = "statement"


class Role(StrEnum):
    """What an expression is used for: it decides which changes make sense."""

    VALUE = "value"
    CONDITION = "condition"
    FLAGS = "flags"  # an operand of a bit operation
    PLACE = "place"  # something whose address is taken or that is written to


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: bytes start to end become after. constant: no value of run time can stand there."""

    start: int
    end: int
    operator: str
    after: str
    shape: Shape
    constant: bool = False
    equivalent: str = ""


def constants_in(text: bytes) -> tuple[str, ...]:
    """Return the names in capitals with an underscore that text uses, sorted: what one of them can be mistaken for."""
    return tuple(sorted({name.decode() for name in _CAPS.findall(text)}))


def find_changes(body: Node, rows: frozenset[int], constants: tuple[str, ...]) -> tuple[list[Change], set[int]]:
    """Return the changes of a function body and the rows (0-based) that could not be read.

    rows are the added ones; a change counts when one row of what it changes is added.
    """
    walker = _Walker(rows, constants)
    walker.block(body)
    return list(dict.fromkeys(walker.changes)), walker.unread


def text_of(node: Node | None) -> str:
    """Return the source text of a node, an empty string for None."""
    return node.text.decode("utf-8", "surrogateescape") if node is not None and node.text is not None else ""


def bare(node: Node) -> Node:
    """Return the node inside any number of parentheses."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1 and (child := node.named_child(0)):
        node = child
    return node


class _Walker:
    def __init__(self, rows: frozenset[int], constants: tuple[str, ...]) -> None:
        self.rows = rows
        self.constants = constants
        self.changes: list[Change] = []
        self.unread: set[int] = set()
        self.last: Node | None = None
        self.constant = False
        self.depth = 0

    def add(
        self, node: Node, operator: str, after: str, shape: Shape, *, changed: Node | None = None, equivalent: str = ""
    ) -> None:
        touched = changed or node
        if after != text_of(node) and not self.rows.isdisjoint(_rows(touched)):
            self.changes.append(
                Change(
                    start=node.start_byte,
                    end=node.end_byte,
                    operator=operator,
                    after=after,
                    shape=shape,
                    constant=self.constant,
                    equivalent=equivalent,
                )
            )

    # Statements.

    def block(self, body: Node) -> None:
        named = [c for c in body.named_children if c.type != "comment"]
        self.last = named[-1] if named else None
        self.statements(body.named_children)

    def statements(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: Node) -> None:
        handler = getattr(self, f"on_{node.type}", None)
        self.depth += 1
        if node.type == "ERROR" or node.is_missing or self.depth > _DEPTH_MAX:
            self.unread.update(_rows(node))
        elif handler is not None and not node.has_error:
            handler(node)
        elif node.type in rules.HOLD_STATEMENTS:
            # A block with something unreadable in it is read as far as it can be.
            self.parts(node)
        elif node.has_error:
            self.unread.update(_rows(node))
        self.depth -= 1

    def parts(self, node: Node) -> None:
        for index, child in enumerate(node.children):
            if not child.is_named or child.type == "comment":
                continue
            field = node.field_name_for_child(index)
            if field == "condition":
                if not child.has_error:
                    self.condition(child, missing_check=node.type == "if_statement")
            elif field in rules.NOT_STATEMENTS or child.type in _INERT:
                continue
            else:
                self.statement(child)

    def on_if_statement(self, node: Node) -> None:
        self.parts(node)

    on_while_statement = on_do_statement = on_compound_statement = on_else_clause = on_if_statement
    on_preproc_if = on_preproc_ifdef = on_preproc_else = on_preproc_elif = on_labeled_statement = on_if_statement

    def on_switch_statement(self, node: Node) -> None:
        if (value := node.child_by_field_name("condition")) is not None:
            self.expression(value, Role.PLACE)
        if (body := node.child_by_field_name("body")) is not None:
            self.statement(body)

    def on_case_statement(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        self.statements(c for c in node.named_children if value is None or c.id != value.id)

    def on_for_statement(self, node: Node) -> None:
        for field in ("initializer", "update"):
            part = node.child_by_field_name(field)
            if part is not None and part.type == "declaration":
                self.statement(part)
            elif part is not None:
                self.expression(part, Role.VALUE)
        if (condition := node.child_by_field_name("condition")) is not None:
            self.expression(condition, Role.CONDITION)
        if (body := node.child_by_field_name("body")) is not None:
            self.statement(body)

    def on_expression_statement(self, node: Node) -> None:
        inner = next((c for c in node.named_children if c.type != "comment"), None)
        if inner is None or rules.is_assertion(_callee(inner)):
            return
        self.add(node, rules.drop_operator(_callee(inner)), "", Shape.STATEMENT)
        self.expression(inner, Role.VALUE)

    def on_break_statement(self, node: Node) -> None:
        self.add(node, f"drop {node.type.removesuffix('_statement')}", "", Shape.STATEMENT)

    on_continue_statement = on_goto_statement = on_break_statement

    def on_return_statement(self, node: Node) -> None:
        if self.last is None or node.id != self.last.id:
            self.add(node, "drop return", "", Shape.STATEMENT)
        value = next((c for c in node.named_children if c.type != "comment"), None)
        if value is None:
            return
        if bare(value).type in ("identifier", "call_expression", "field_expression"):
            self.add(value, "return value", "0", Shape.VALUE)
        self.expression(value, Role.VALUE)

    def on_declaration(self, node: Node) -> None:
        static = any(c.type == "storage_class_specifier" and c.text == b"static" for c in node.children)
        boolean = text_of(node.child_by_field_name("type")) == "bool"
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            if value is None:
                continue
            self.constant = static
            if value.type == "initializer_list":
                self.expression(value, Role.VALUE)
            elif boolean:
                self.condition(value)
            else:
                if text_of(value) not in ("0", "NULL"):
                    self.add(value, "initial value", "0", Shape.VALUE)
                self.expression(value, Role.VALUE)
            self.constant = False

    # Expressions.

    def condition(self, node: Node, *, missing_check: bool = False) -> None:
        inner = bare(node)
        if missing_check:
            self.add(inner, "check dropped", "1", Shape.CONDITION)
        operator = text_of(inner.child_by_field_name("operator"))
        if operator not in rules.COMPARISONS and operator != "!":
            self.add(inner, "negate", f"!({text_of(inner)})", Shape.CONDITION)
        self.expression(inner, Role.CONDITION)

    def expression(self, node: Node, role: Role) -> None:
        handler = getattr(self, f"expr_{node.type}", None)
        if handler is None or node.type in _INERT or node.has_error or self.depth > _DEPTH_MAX:
            return
        self.depth += 1
        handler(node, role)
        self.depth -= 1

    def each(self, nodes: Iterable[Node | None], role: Role) -> None:
        for node in nodes:
            if node is not None:
                self.expression(node, role)

    def expr_parenthesized_expression(self, node: Node, role: Role) -> None:
        self.each(node.named_children, role)

    expr_comma_expression = expr_parenthesized_expression

    def expr_binary_expression(self, node: Node, role: Role) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        operator = text_of(node.child_by_field_name("operator"))
        shape = Shape.CONDITION if role is Role.CONDITION or operator in rules.LOGICAL else Shape.VALUE
        texts = (text_of(left), text_of(right))
        in_chain = text_of(left.child_by_field_name("operator")) == operator
        for name, after, dropped in rules.binary(operator, *texts, in_chain=in_chain):
            self.add(node, name, after, shape, changed={"left": left, "right": right}.get(dropped))
        inner = Role.VALUE
        if operator in rules.LOGICAL:
            inner = Role.CONDITION
        elif operator in rules.BITWISE:
            inner = Role.FLAGS
        self.each((left, right), inner)

    def expr_unary_expression(self, node: Node, role: Role) -> None:
        inner = node.child_by_field_name("argument")
        if inner is None:
            return
        operator, text = text_of(node.child_by_field_name("operator")), text_of(inner)
        if operator == "!":
            self.add(node, "negate", f"!!{text}", Shape.CONDITION)
            self.expression(inner, Role.CONDITION)
        elif operator == "-" and rules.is_errno(text):
            self.add(node, "wrong errno", f"-{rules.other_errno(text)}", Shape.VALUE)
            self.add(node, "error dropped", "0", Shape.VALUE)
        elif operator in "-~":
            self.add(node, "drop operator", text, Shape.VALUE)
            self.expression(inner, Role.FLAGS if operator == "~" else role)

    def expr_call_expression(self, node: Node, role: Role) -> None:
        name, arguments = _callee(node), node.child_by_field_name("arguments")
        if rules.is_assertion(name) or rules.is_constant_macro(name) or arguments is None:
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        texts = [text_of(c) for c in given]
        shape = Shape.CONDITION if role is Role.CONDITION else Shape.VALUE
        for operator, after, reason in rules.call(name, texts):
            self.add(node, operator, after, shape, equivalent=reason)
        for argument in given[1 if rules.takes_type(name) else 0 :]:
            self.expression(argument, Role.VALUE)

    def expr_sizeof_expression(self, node: Node, _role: Role) -> None:
        for after in rules.sizes(text_of(node)):
            self.add(node, "wrong size", after, Shape.VALUE)

    def expr_assignment_expression(self, node: Node, _role: Role) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            return
        for other in rules.ASSIGNMENTS.get(operator, ()):
            after = f"{text_of(left)} {other} {text_of(right)}"
            self.add(node, "wrong operator", after, Shape.VALUE)
        self.expression(left, Role.PLACE)
        self.expression(right, Role.FLAGS if operator in ("|=", "&=") else Role.VALUE)

    def expr_conditional_expression(self, node: Node, role: Role) -> None:
        if (condition := node.child_by_field_name("condition")) is not None:
            self.condition(condition)
        self.each((node.child_by_field_name("consequence"), node.child_by_field_name("alternative")), role)

    def expr_cast_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("value")], Role.VALUE)

    def expr_compound_literal_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("value")], Role.VALUE)

    def expr_subscript_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)
        self.each([node.child_by_field_name("index")], Role.VALUE)

    def expr_field_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)

    def expr_pointer_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)

    def expr_initializer_list(self, node: Node, _role: Role) -> None:
        for item in node.named_children:
            value = item.child_by_field_name("value") if item.type == "initializer_pair" else item
            if value is None or value.type == "comment":
                continue
            simple = value.type != "initializer_list" and text_of(value) not in ("0", "NULL")
            if item.type == "initializer_pair" and simple:
                self.add(value, "field not set", "0", Shape.VALUE)
            self.expression(value, Role.VALUE)

    def expr_number_literal(self, node: Node, role: Role) -> None:
        if role in (Role.VALUE, Role.FLAGS) and (after := rules.other_number(text_of(node))):
            self.add(node, "off by one", after, Shape.VALUE)

    def expr_true(self, node: Node, role: Role) -> None:
        if role is Role.VALUE:
            self.add(node, "wrong constant", "false", Shape.VALUE)

    def expr_false(self, node: Node, role: Role) -> None:
        if role is Role.VALUE:
            self.add(node, "wrong constant", "true", Shape.VALUE)

    def expr_identifier(self, node: Node, role: Role) -> None:
        if role not in (Role.PLACE, Role.CONDITION):
            for operator, after in rules.other_constant(text_of(node), self.constants, flags=role is Role.FLAGS):
                self.add(node, operator, after, Shape.VALUE)


def _rows(node: Node) -> range:
    return range(node.start_point[0], node.end_point[0] + 1)


def _callee(node: Node) -> str:
    return text_of(node.child_by_field_name("function")) if node.type == "call_expression" else ""
