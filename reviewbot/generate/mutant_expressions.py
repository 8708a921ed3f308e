"""Every place of an expression where a small change makes a wrong kernel (pure).

In: the tree-sitter nodes of expressions. Out: Changes, in byte offsets of the text that was parsed.
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
DEPTH_MAX = 150  # foreign text must not exhaust the stack; kernel code comes nowhere near
INERT = frozenset({"string_literal", "concatenated_string", "char_literal", "comment", "offsetof_expression"})


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


def text_of(node: Node | None) -> str:
    """Return the source text of a node, an empty string for None."""
    return node.text.decode("utf-8", "surrogateescape") if node is not None and node.text is not None else ""


def bare(node: Node) -> Node:
    """Return the node inside any number of parentheses."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1 and (child := node.named_child(0)):
        node = child
    return node


class Expressions:
    """Collects the changes of expressions; rows are those that count as added."""

    def __init__(self, rows: frozenset[int], constants: tuple[str, ...]) -> None:
        self.rows = rows
        self.constants = constants
        self.changes: list[Change] = []
        self.constant = False
        self.depth = 0

    def add(
        self, node: Node, operator: str, after: str, shape: Shape, *, changed: Node | None = None, equivalent: str = ""
    ) -> None:
        """Keep the change of node to after, when what is changed (node, or a part of it) was added by the series."""
        touched = changed or node
        if after != text_of(node) and not self.rows.isdisjoint(rows_of(touched)):
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

    def condition(self, node: Node, *, missing_check: bool = False) -> None:
        """Keep the changes of something that is true or false; missing_check for one that an if asks."""
        inner = bare(node)
        if missing_check:
            self.add(inner, "check dropped", "1", Shape.CONDITION)
        operator = text_of(inner.child_by_field_name("operator"))
        if operator not in rules.COMPARISONS and operator != "!":
            self.add(inner, "negate", f"!({text_of(inner)})", Shape.CONDITION)
        self.expression(inner, Role.CONDITION)

    def expression(self, node: Node, role: Role) -> None:
        """Keep the changes of an expression that is used for role."""
        handler = getattr(self, f"_expr_{node.type}", None)
        if handler is None or node.type in INERT or node.has_error or self.depth > DEPTH_MAX:
            return
        self.depth += 1
        handler(node, role)
        self.depth -= 1

    def each(self, nodes: Iterable[Node | None], role: Role) -> None:
        """Keep the changes of several expressions."""
        for node in nodes:
            if node is not None:
                self.expression(node, role)

    def _expr_parenthesized_expression(self, node: Node, role: Role) -> None:
        self.each(node.named_children, role)

    _expr_comma_expression = _expr_parenthesized_expression

    def _expr_binary_expression(self, node: Node, role: Role) -> None:
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

    def _expr_unary_expression(self, node: Node, role: Role) -> None:
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

    def _expr_call_expression(self, node: Node, role: Role) -> None:
        name, arguments = callee_of(node), node.child_by_field_name("arguments")
        if rules.is_assertion(name) or rules.is_constant_macro(name) or arguments is None:
            return
        given = [c for c in arguments.named_children if c.type != "comment"]
        texts = [text_of(c) for c in given]
        shape = Shape.CONDITION if role is Role.CONDITION else Shape.VALUE
        for operator, after, reason in rules.call(name, texts):
            self.add(node, operator, after, shape, equivalent=reason)
        for argument in given[1 if rules.takes_type(name) else 0 :]:
            self.expression(argument, Role.VALUE)

    def _expr_sizeof_expression(self, node: Node, _role: Role) -> None:
        for after in rules.sizes(text_of(node)):
            self.add(node, "wrong size", after, Shape.VALUE)

    def _expr_assignment_expression(self, node: Node, _role: Role) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            return
        for other in rules.ASSIGNMENTS.get(operator, ()):
            after = f"{text_of(left)} {other} {text_of(right)}"
            self.add(node, "wrong operator", after, Shape.VALUE)
        self.expression(left, Role.PLACE)
        self.expression(right, Role.FLAGS if operator in ("|=", "&=") else Role.VALUE)

    def _expr_conditional_expression(self, node: Node, role: Role) -> None:
        if (condition := node.child_by_field_name("condition")) is not None:
            self.condition(condition)
        self.each((node.child_by_field_name("consequence"), node.child_by_field_name("alternative")), role)

    def _expr_cast_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("value")], Role.VALUE)

    def _expr_compound_literal_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("value")], Role.VALUE)

    def _expr_subscript_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)
        self.each([node.child_by_field_name("index")], Role.VALUE)

    def _expr_field_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)

    def _expr_pointer_expression(self, node: Node, _role: Role) -> None:
        self.each([node.child_by_field_name("argument")], Role.PLACE)

    def _expr_initializer_list(self, node: Node, _role: Role) -> None:
        for item in node.named_children:
            value = item.child_by_field_name("value") if item.type == "initializer_pair" else item
            if value is None or value.type == "comment":
                continue
            simple = value.type != "initializer_list" and text_of(value) not in ("0", "NULL")
            if simple and (item.type == "initializer_pair" or value.type in ("identifier", "field_expression")):
                self.add(value, "field not set", "0", Shape.VALUE)
            self.expression(value, Role.VALUE)

    def _expr_number_literal(self, node: Node, role: Role) -> None:
        if role in (Role.VALUE, Role.FLAGS) and (after := rules.other_number(text_of(node))):
            self.add(node, "off by one", after, Shape.VALUE)

    def _expr_true(self, node: Node, role: Role) -> None:
        if role is Role.VALUE:
            self.add(node, "wrong constant", "false", Shape.VALUE)

    def _expr_false(self, node: Node, role: Role) -> None:
        if role is Role.VALUE:
            self.add(node, "wrong constant", "true", Shape.VALUE)

    def _expr_identifier(self, node: Node, role: Role) -> None:
        if role not in (Role.PLACE, Role.CONDITION):
            for operator, after in rules.other_constant(text_of(node), self.constants, flags=role is Role.FLAGS):
                self.add(node, operator, after, Shape.VALUE)


def rows_of(node: Node) -> range:
    """Return the rows (0-based) of a node."""
    return range(node.start_point[0], node.end_point[0] + 1)


def callee_of(node: Node) -> str:
    """Return the name of the function that a call expression calls, an empty string for anything else."""
    return text_of(node.child_by_field_name("function")) if node.type == "call_expression" else ""
