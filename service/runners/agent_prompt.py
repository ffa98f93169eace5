"""What the agent is told. Both arms hear the same words; only the list of skills differs."""

from service.runners.port import SkillFolder

_SYSTEM = """You are an agent that carries out a task with the tools you are given.

Working directory: {directory}

- Your tools act in the working directory; everything you make belongs there. There is no network.
- Do the whole task, and nothing beyond it. Look at the input files before you use them.
- Check your work before you finish. If something fails, say so; do not claim what you have not done.
- If you had to guess, left something for a person to check, or worked around a problem, write that into
  user_notes.md in the working directory, under the headings Uncertainty, Needs Human Review, Workarounds.
- When you are done, say in a few sentences what you made and where it is."""

_SKILLS = """

The following skills are available:

- {name}: {description} (file: {file})

A skill is a folder with instructions for a kind of task. If one fits the task, read its SKILL.md first, then the
files it names when you need them. The folder is read-only; paths in it are relative to it."""

GO_ON = "Go on where you stopped."
MAX_DESCRIPTION_CHARS = 4_000


def system_prompt(directory: str, skill_directory: str | None, skill: SkillFolder | None) -> str:
    """The system prompt of an arm."""
    text = _SYSTEM.format(directory=directory)
    if skill is None or skill_directory is None:
        return text
    description = " ".join(skill.description.split())[:MAX_DESCRIPTION_CHARS] or "no description"
    return text + _SKILLS.format(name=skill.name, description=description, file=f"{skill_directory}/SKILL.md")


def task_message(prompt: str, inputs: tuple[str, ...]) -> str:
    """The task as the agent reads it."""
    if not inputs:
        return prompt if prompt.strip() else "(no task was given)"
    return f"{prompt}\n\nInput files (in your working directory):\n" + "\n".join(f"- {name}" for name in inputs)
