"""The composition root: the one place that names concrete connections and the blackboard."""

from genba.wiring.project.project_context import ProjectContext, adapter_files

__all__ = ["ProjectContext", "adapter_files"]
