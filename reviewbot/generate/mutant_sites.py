"""Every place of a parsed function body where a small change makes a wrong kernel (pure).

In: the tree-sitter node of a body and which of its rows count. Out: Changes, in byte offsets of that node's text, and
the rows that hold a statement which the parser did not understand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reviewbot.generate import mutant_rules as rules
from reviewbot.generate.mutant_expressions import (
    DEPTH_MAX,
    INERT,
    Change,
    Expressions,
    Role,
    Shape,
    bare,
    callee_of,
    rows_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node


def find_changes(body: Node, rows: frozenset[int], constants: tuple[str, ...]) -> tuple[list[Change], set[int]]:
    """Return the changes of a function body and the rows (0-based) that could not be read.

    rows are the added ones; a change counts when one row of what it changes is added.
    """
    walker = _Walker(rows, constants)
    walker.block(body)
    return list(dict.fromkeys(walker.changes)), walker.unread


class _Walker(Expressions):
    def __init__(self, rows: frozenset[int], constants: tuple[str, ...]) -> None:
        super().__init__(rows, constants)
        self.unread: set[int] = set()
        self.last: Node | None = None
        self.ends = 0

    def block(self, body: Node) -> None:
        self.last = _last(body)
        self.ends = body.end_byte - 1
        self.statements(body.named_children)

    def statements(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: Node) -> None:
        handler = getattr(self, f"on_{node.type}", None)
        self.depth += 1
        if node.type == "ERROR" or node.is_missing or self.depth > DEPTH_MAX:
            self.unread.update(rows_of(node))
        elif handler is not None and not node.has_error:
            handler(node)
        elif node.type in rules.HOLD_STATEMENTS:
            # A block with something unreadable in it is read as far as it can be.
            self.parts(node)
        elif node.has_error:
            self.unread.update(rows_of(node))
        self.depth -= 1

    def parts(self, node: Node) -> None:
        for index, child in enumerate(node.children):
            if not child.is_named or child.type == "comment":
                continue
            field = node.field_name_for_child(index)
            if field == "condition":
                if not child.has_error:
                    self.condition(child, missing_check=node.type == "if_statement")
            elif field in rules.NOT_STATEMENTS or child.type in INERT:
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
        if inner is None or rules.is_assertion(callee_of(inner)):
            return
        if node.end_byte == self.ends and (arguments := inner.child_by_field_name("arguments")) is not None:
            # A macro that makes the rest of the function, its return too: it is no value, and cannot be left out.
            self.each(arguments.named_children, Role.VALUE)
            return
        self.add(node, rules.drop_operator(callee_of(inner)), "", Shape.STATEMENT)
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


def _last(body: Node) -> Node | None:
    # The statement that a body ends with; that of a macro has a block of its own.
    last: Node | None = body
    while last is not None and last.type == "compound_statement":
        named = [c for c in last.named_children if c.type != "comment" and c.text != b";"]
        last = named[-1] if named else None
    return last
