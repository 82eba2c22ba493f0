"""All scenes, and the kinds of sandbox that each is played on."""

from tests.attacks import goals, host, inside, output, planted

ALL_SCENES = (*inside.SCENES, *planted.SCENES, *goals.SCENES, *output.SCENES, *host.SCENES)
PLAYED = tuple((scene, kind) for scene in ALL_SCENES for kind in scene.kinds)
