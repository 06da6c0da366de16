"""What to do about a run that doesn't go on, by the code of its error."""

DEFAULT = "Mend what the message names, then start the run again with the same input."

ADVICE = {
    "checkpoint-tampered": (
        "Nothing has run, and the decisions are kept. The stored checkpoint was changed outside of "
        "Flowsite: find out who can write to the database, then put the row back from a backup."
    ),
    "decision-tampered": (
        "Nothing has run. The decision was written or changed outside of Flowsite: find out who "
        "can write to the database, and compare it with the audit trail and a backup."
    ),
    "state-not-sealable": (
        "The state holds a value that can't be stored and read back unchanged. Keep what can be "
        "made anew out of the state, then start the run again."
    ),
    "graph-changed": (
        "The flow was changed after this run began. Put the version that it was started with back, "
        "beside the new one, and the run can go on."
    ),
    "unknown-flow": (
        "The flow that this run belongs to is not registered in this version. Put its flows.py "
        "back, or name its app in FLOWSITE_FLOW_APPS, and the run can go on."
    ),
    "approval-denied": (
        "A person said no, and the flow has no way to go on from there. The reason is below, with "
        "the request."
    ),
    "internal-error": (
        "Nothing was stored of what this walk did. Look into the worker's log, and see what the "
        "calls below have done before the run is started again."
    ),
    "already-decided": (
        "Nothing has run. The stored checkpoint or the decision is not the newest: look for what "
        "was put back or changed in the database, mend it, and try again."
    ),
    "invalid-answer": (
        "Nothing has run, and the decision is kept. The form was changed after it was answered: "
        "put its old version back, and try again."
    ),
    "unknown-request": (
        "A decision named a request that this run doesn't wait for. Nothing has run."
    ),
    "node-failed": (
        "Mend what the message names, then start the run again. See first, among the calls below, "
        "what has already been done."
    ),
    "step-limit": (
        "The run went round more often than a flow may. Look at the condition that should end the "
        "circle."
    ),
    "state-conflict": (
        "Two nodes side by side set the same field to different values. Let each set its own."
    ),
    "outcome-unknown": (
        "A call had begun when the worker was lost, and nobody knows whether it did its work. Look "
        "at the system it speaks to before anything is run again."
    ),
}
