"""Which tables a view has: one kind for each way in which batches become rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.stores.views.added_view import AddedView
from penstock.stores.views.append_view import AppendView
from penstock.stores.views.final_sessions_view import FinalSessionsView
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.keyed_view import KeyedView
from penstock.stores.views.pairs_view import PairsView
from penstock.stores.views.panes_view import PanesView
from penstock.stores.views.sessions_view import SessionsView
from penstock.stores.views.windows_view import WindowsView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.stores.views.model import ViewSpec
    from penstock.stores.views.view_table import ViewTable


def view_table(number: int, spec: ViewSpec, views: Mapping[str, ViewTable]) -> ViewTable:
    """The tables of a view; `views` are those that it may be built on, by their names."""
    if spec.kind == "panes":
        return PanesView(number, spec)
    if spec.windows is not None:
        if spec.windows.sessions:
            return FinalSessionsView(number, spec) if spec.windows.final else SessionsView(number, spec)
        return WindowsView(number, spec)
    if spec.finish is not None and spec.finish.view.pairs:
        return PairsView(number, spec)
    if spec.kind == "finish":
        by_rows = spec.finish is not None and spec.finish.by_rows
        return AddedView(number, spec, views) if by_rows else FinishView(number, spec, views)
    return AppendView(number, spec) if spec.kind == "append" else KeyedView(number, spec)
