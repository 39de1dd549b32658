"""The definition of a view as the text that the store keeps, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.stores.views.model import ViewSpec
from penstock.types import Field, SqlType

if TYPE_CHECKING:
    from penstock.plan.finish_plan import Asked, BestOfKey, Closing, FinishPlan, KeptRows, RowChanges, WindowEnds
    from penstock.plan.joined_pane_plan import JoinedPanes
    from penstock.plan.merge_plan import MergePlan
    from penstock.plan.pane_plan import PanePlan
    from penstock.plan.windows_plan import WindowsPlan


def spec_to_text(spec: ViewSpec) -> str:
    """The definition as JSON."""
    document = {
        "name": spec.name,
        "columns": [[name, _type_out(kind)] for name, kind in spec.columns],
        "kind": spec.kind,
        "key": list(spec.key),
        "merge": None if spec.merge is None else _merge_out(spec.merge),
        "retention_us": spec.retention_us,
        "hidden": [[name, _type_out(kind)] for name, kind in spec.hidden],
    }
    if spec.panes is not None:
        document["panes"] = asdict(spec.panes)
    if spec.joined is not None:
        document["joined"] = {
            "sides": [[side.name, asdict(side.panes), _merge_out(side.merge)] for side in spec.joined.sides],
            "text": spec.joined.text,
        }
    if spec.windows is not None:
        document["windows"] = asdict(spec.windows)
    if spec.finish is not None:
        document["finish"] = _finish_out(spec.finish)
    if spec.ttl_us is not None:
        document["ttl_us"] = spec.ttl_us
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"))


def spec_from_text(text: str) -> ViewSpec:
    """The definition that was written as this text."""
    document = json.loads(text)
    return ViewSpec(
        name=document["name"],
        columns=tuple((name, _type_in(kind)) for name, kind in document["columns"]),
        kind=document["kind"],
        key=tuple(document["key"]),
        merge=None if document["merge"] is None else _merge_in(document["merge"]),
        retention_us=document["retention_us"],
        hidden=tuple((name, _type_in(kind)) for name, kind in document["hidden"]),
        panes=_panes_in(document["panes"]) if "panes" in document else None,
        joined=_joined_in(document["joined"]) if "joined" in document else None,
        windows=_windows_in(document["windows"]) if "windows" in document else None,
        finish=_finish_in(document["finish"]) if "finish" in document else None,
        ttl_us=document.get("ttl_us"),
    )


def _panes_in(document: dict[str, Any]) -> PanePlan:
    from penstock.plan.pane_plan import PanePlan

    shown = tuple((name, partial) for name, partial in document["shown"])
    cumulates = bool(document.get("cumulates"))  # what was written before there was CUMULATE does not say
    return PanePlan(document["size_us"], document["slide_us"], document["offset_us"], shown, cumulates)


def _joined_in(document: dict[str, Any]) -> JoinedPanes:
    from penstock.plan.joined_pane_plan import JoinedPanes, PaneSide

    sides = (PaneSide(name, _panes_in(panes), _merge_in(merge)) for name, panes, merge in document["sides"])
    return JoinedPanes(tuple(sides), document["text"])


def _windows_in(document: dict[str, Any]) -> WindowsPlan:
    from penstock.plan.windows_plan import WindowsPlan

    shown = tuple((name, partial) for name, partial in document["shown"])
    return WindowsPlan(document["column"], document["gap_us"], shown, bool(document.get("final")))


def _finish_out(plan: FinishPlan) -> dict[str, Any]:
    more: dict[str, Any] = {"asked": [_asked_out(each) for each in plan.asked]} if plan.asked else {}
    more |= {"closing": asdict(plan.closing)} if plan.closing is not None else {}
    return more | {
        "rows": [
            [
                rows.relation,
                [[entry.name, _maybe_out(entry.type)] for entry in rows.columns],
                list(rows.shown),
                *([] if rows.changes is None else [asdict(rows.changes)]),
                *([] if rows.read is None else [rows.read]),
                *([_bounds_out(rows)] if rows.since or rows.until or rows.stamps else []),
                *([{"passing": True}] if rows.passing else []),
                *([{"dimension": True}] if rows.dimension else []),
                *([{"distinct": True}] if rows.distinct else []),
                *([] if rows.best is None else [{"best": asdict(rows.best)}]),
                *([] if rows.ends is None else [{"ends": asdict(rows.ends)}]),
            ]
            for rows in plan.rows
        ],
        "stages": [
            {
                "words": stage.words,
                "leaves": [[leaf.name, leaf.source, list(leaf.columns), list(leaf.key)] for leaf in stage.leaves],
                "text": stage.text,
                "columns": [[name, _type_out(kind)] for name, kind in stage.columns],
                "keys": list(stage.keys),
                "unique": None if stage.unique is None else list(stage.unique),
                **({"timed": True} if stage.timed else {}),
                **({"meets": True} if stage.meets else {}),
                **({"once": [leaf.name for leaf in stage.leaves if leaf.fresh]} if stage.once else {}),
                **({"pairs": True} if stage.pairs else {}),
            }
            for stage in plan.stages
        ],
    }


def _asked_out(asked: Asked) -> dict[str, Any]:
    types = {"arguments": [_type_out(kind) for kind in asked.arguments], "type": _type_out(asked.type)}
    return {**asdict(asked), **types, "functions": list(asked.functions)}


def _asked_in(document: dict[str, Any]) -> Asked:
    from penstock.plan.finish_plan import Asked

    types = {"arguments": tuple(map(_type_in, document["arguments"])), "type": _type_in(document["type"])}
    return Asked(**{**document, **types, "functions": tuple(document["functions"])})


def _changes_in(document: dict[str, Any]) -> RowChanges:
    from penstock.plan.finish_plan import RowChanges

    return RowChanges(**{**document, "key": tuple(document["key"])})


def _bounds_in(document: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(document[name]) for name in ("since", "until", "stamps")}


def _bounds_out(rows: KeptRows) -> dict[str, list[str]]:
    return {"since": list(rows.since), "until": list(rows.until), "stamps": list(rows.stamps)}


def _best_in(document: dict[str, Any]) -> BestOfKey:
    from penstock.plan.finish_plan import BestOfKey, Placed

    order = tuple(Placed(**each) for each in document["order"])
    return BestOfKey(**{**document, "by": tuple(document["by"]), "order": order})


def _ends_in(document: dict[str, Any]) -> WindowEnds:
    from penstock.plan.finish_plan import WindowEnds

    return WindowEnds(document["column"], _panes_in(document["panes"]))


def _closing_in(document: dict[str, Any]) -> Closing:
    from penstock.plan.finish_plan import Closing

    return Closing(_panes_in(document["panes"]), tuple(document["times"]))


def _finish_in(document: dict[str, Any]) -> FinishPlan:
    from penstock.plan.finish_plan import FinishPlan, KeptColumn, KeptRows, Leaf, Stage

    rows = tuple(
        KeptRows(
            relation,
            tuple(KeptColumn(name, _maybe_in(kind)) for name, kind in columns),
            tuple(shown),
            changes=next((_changes_in(each) for each in more if isinstance(each, dict) and "key" in each), None),
            read=next((each for each in more if isinstance(each, str)), None),
            **next((_bounds_in(each) for each in more if isinstance(each, dict) and "until" in each), {}),
            passing=any(isinstance(each, dict) and "passing" in each for each in more),
            dimension=any(isinstance(each, dict) and "dimension" in each for each in more),
            distinct=any(isinstance(each, dict) and "distinct" in each for each in more),
            best=next((_best_in(each["best"]) for each in more if isinstance(each, dict) and "best" in each), None),
            ends=next((_ends_in(each["ends"]) for each in more if isinstance(each, dict) and "ends" in each), None),
        )
        for relation, columns, shown, *more in document["rows"]
    )
    stages = tuple(
        Stage(
            words=stage["words"],
            leaves=tuple(
                Leaf(
                    name,
                    source,
                    tuple((shown, own) for shown, own in columns),
                    tuple(key),
                    fresh=name in stage.get("once", ()),
                )
                for name, source, columns, key in stage["leaves"]
            ),
            text=stage["text"],
            columns=tuple((name, _type_in(kind)) for name, kind in stage["columns"]),
            keys=tuple(stage["keys"]),
            unique=None if stage["unique"] is None else tuple(stage["unique"]),
            timed=bool(stage.get("timed")),
            once="once" in stage,
            meets=bool(stage.get("meets")),
            pairs=bool(stage.get("pairs")),
        )
        for stage in document["stages"]
    )
    closing = _closing_in(document["closing"]) if "closing" in document else None
    return FinishPlan(rows, stages, tuple(map(_asked_in, document.get("asked", ()))), closing)


def _type_out(kind: SqlType) -> list[Any]:
    return [
        kind.name,
        list(kind.parameters),
        [_type_out(element) for element in kind.elements],
        [[field.name, _type_out(field.type)] for field in kind.fields],
    ]


def _type_in(parts: list[Any]) -> SqlType:
    name, parameters, elements, fields = parts
    return SqlType(
        name,
        tuple(parameters),
        tuple(_type_in(element) for element in elements),
        tuple(Field(field, _type_in(kind)) for field, kind in fields),
    )


def _maybe_out(kind: SqlType | None) -> list[Any] | None:
    return None if kind is None else _type_out(kind)


def _maybe_in(parts: list[Any] | None) -> SqlType | None:
    return None if parts is None else _type_in(parts)


def _merge_out(plan: MergePlan) -> dict[str, Any]:
    more: dict[str, Any] = {"derived": [list(entry) for entry in plan.derived]} if plan.derived else {}
    more |= {"best": asdict(plan.best)} if plan.best is not None else {}
    return more | {
        "keys": [[key.name, _maybe_out(key.type)] for key in plan.keys],
        "partials": [
            [part.name, _maybe_out(part.type), part.how, *([] if part.function is None else [part.function])]
            for part in plan.partials
        ],
        "columns": [[column.name, _maybe_out(column.type), column.expression] for column in plan.columns],
        "keep": plan.keep,
    }


def _merge_in(document: dict[str, Any]) -> MergePlan:
    from penstock.plan.merge_plan import Best, MergeColumn, MergeKey, MergePlan, Partial

    best = document.get("best")
    return MergePlan(
        tuple(MergeKey(name, _maybe_in(kind)) for name, kind in document["keys"]),
        tuple(Partial(name, _maybe_in(kind), *how) for name, kind, *how in document["partials"]),
        tuple(MergeColumn(name, _maybe_in(kind), expression) for name, kind, expression in document["columns"]),
        document["keep"],
        tuple((name, expression) for name, expression in document.get("derived", ())),
        None if best is None else Best(**{**best, "by": tuple(best["by"])}),
    )
