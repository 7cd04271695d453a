"""Common mistakes: one line on stderr that names the next step."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.cli.support import Command, debaters
from tests.support.model_server import ModelServer

FILES = {
    "empty.txt": b"",
    "data.bin": b"\x00\xff",
    "photo.png": b"not a picture",
    "contract.pdf": b"not a document",
    "typo.yaml": b"max_round: 3\n",
    "broken.yaml": b"a: [\n",
    "request.json": b"{}",
    "frage.csv": b"frage\nA?\n",
    "good.txt": b"A?\n",
}
# What was typed, and a part of the reply. ID stands for a finished debate.
MISTAKES = [
    # Commands that do not exist.
    ('aks "Why?"', "Did you mean 'ask'?"),
    ('"Should we use Rust?"', 'contend ask "Should we use Rust?"'),
    ('debate "Should we use Rust?"', 'contend ask "Should we use Rust?"'),
    ("chat", "Did you mean 'ask'?"),
    ("logs", "Did you mean 'list'?"),
    ("rm ID", "Did you mean 'delete'?"),
    ("continue ID", "Did you mean 'resume'?"),
    ("model list", "Did you mean 'models'?"),
    ("models install x", "Did you mean 'pull'?"),
    ("templates delete x", "Did you mean 'remove'?"),
    ("web", "Did you mean 'serve'?"),
    ("login", "Did you mean 'doctor'?"),
    ("help ask", "See `contend --help`."),
    ("version", "Use: contend --version."),
    ("-v", "Did you mean --version?"),
    # Options of other tools.
    ('ask "Why?" --modle openai:m', "Did you mean --model?"),
    ('ask "Why?" --models openai:m', "Did you mean --model?"),
    ('ask "Why?" --rounds 3', "--set max_rounds=3"),
    ('ask "Why?" --max-cost 5', "The price of openai:gpt-5-mini is unknown"),
    ('ask "Why?" --max-tokens 500', "--budget"),
    ('ask "Why?" --temperature 0.2', "--set judge_temperature=0.2"),
    ('ask "Why?" --judge-model openai:m', "--set judge_model="),
    ('ask "Why?" --agents 3', "Did you mean --seat?"),
    ('ask "Why?" --file notes.txt', "Did you mean --docs?"),
    ('ask "Why?" -o answer.md', "contend export ID --format html"),
    ('ask "Why?" --api-key sk-1', "contend keys set OPENAI_API_KEY"),
    ('ask "Why?" --timeout 30', "--set total_timeout=600"),
    ('ask "Why?" --no-color', "NO_COLOR=1"),
    ('ask "Why?" --verbose', "Did you mean --debug?"),
    ("serve --reload", "See `contend serve --help`."),
    ("batch good.txt --out r --workers 3", "Did you mean --parallel?"),
    # Arguments that are missing, or too many.
    ("ask", 'Put the question in quotes: contend ask "..."'),
    ("ask Why not", 'Put the question in quotes: contend ask "..."'),
    ('ask ""', "The question is empty."),
    ('ask "Why?" --protocol', "requires an argument"),
    ("show", "`contend list` shows the ids."),
    ("list done", "To find debates, use --search WORDS."),
    ("export ID answer.md", "Name the file with --output."),
    ("config set max_rounds 3", "change one with --set NAME=VALUE"),
    ("rate ID", "Give either a rating from 1 to 10, or --auto."),
    ("batch good.txt", "Name a folder for the results: --out results."),
    # Models and keys.
    ('ask "Why?" -m gpt-5', "Did you mean 'openai:gpt-5'"),
    ('ask "Why?" -m openai/gpt-5', "Did you mean 'openai:gpt-5'?"),
    ('ask "Why?" -m opneai:gpt-5', "Did you mean 'openai:gpt-5'?"),
    ('ask "Why?" -m openai:', "Write openai:MODEL."),
    ('ask "Why?" -m ollama:gone', "Get it with `ollama pull gone`."),
    ('ask "Why?" -m anthropic:claude', "pip install 'contend[anthropic]'"),
    ('ask "Why?" -m embedded:gone', "use embedded:"),
    ("models pull gone", "Known: "),
    ('OPENAI_API_KEY= ask "Why?" -m openai:m', "OPENAI_API_KEY is not set"),
    ('OPENROUTER_API_KEY= ask "Why?" -m openrouter:a/b', "OPENROUTER_API_KEY is not set"),
    ('OPENAI_BASE_URL=nonsense ask "Why?" -m openai:m', "Write it like https://HOST:PORT/v1"),
    ('OLLAMA_HOST=127.0.0.1:9 ask "Why?" -m ollama:qwen3', "Start it with `ollama serve`"),
    # Settings and protocols.
    ('ask "Why?" --protocol forums', "Did you mean 'forum'?"),
    ("graph debates", "Known: adversarial, forum"),
    ('ask "Why?" --set max_round=3', "Did you mean 'max_rounds'?"),
    ('ask "Why?" --set max_rounds', "NAME=VALUE, such as max_rounds=4"),
    ('ask "Why?" --set max_rounds=many', "must be a whole number"),
    ('ask "Why?" --set max_rounds=0', "must be between 1 and 50"),
    ('CONTEND_MAX_ROUNDS=many ask "Why?"', "not many (CONTEND_MAX_ROUNDS)"),
    ('ask "Why?" --pause always', "'never', 'each_round', 'before_synthesis'"),
    ('ask "Why?" --seat A=openai:m', "--seat works only with forum and refine."),
    ('ask "Why?" -p forum --seat A=openai:m', "add another --seat NAME=MODEL"),
    ('ask "Why?" -p refine --seat openai:m', "not in the form NAME=MODEL"),
    ('ask "Why?" -p moderated -m openai:m --position yes', "not in the form NAME: POSITION"),
    ('ask "Why?" --position "A: yes"', "--position works only with --protocol moderated."),
    ('ask "Why?" --outcome "yes: a"', "--outcome works only with --protocol forecast."),
    ('ask "Why?" -p forecast', 'Give each with --outcome "ID: LABEL"'),
    ('ask "Why?" -p forecast --outcome "yes: a"', "at least two outcomes"),
    ('ask "Why?" --json --events', "use only one of them"),
    # Files.
    ('ask "Why?" -m openai:m --docs gone.pdf', "File not found: gone.pdf."),
    ('ask "Why?" -m openai:m --docs contract.pdf', "export or download it again"),
    ('ask "Why?" -m openai:m --docs data.bin', "give files that end in .txt"),
    ('ask "Why?" -m openai:m --docs empty.txt', "give a file with text in it"),
    ('ask "Why?" -m openai:m --image photo.png', "not a PNG, JPEG, GIF or WebP image"),
    ('ask "Why?" --config gone.yaml', "cannot be read: No such file"),
    ('ask "Why?" --config typo.yaml', "Did you mean 'max_rounds'?"),
    ('ask "Why?" --config broken.yaml', "not valid YAML (line 2, column 1)"),
    ("ask -p forecast --request request.json", "`contend schema` prints the form"),
    ("templates add gone.md", "Cannot read gone.md: No such file"),
    ("batch frage.csv --out r", "must name a column `question`; it has: frage."),
    ("batch contract.pdf --out r", "read from .csv, .jsonl and .txt files"),
    ("export ID --output /nowhere/a/b.md", "Cannot write /nowhere/a/b.md"),
    # Ids and values.
    ("show nothing", "`contend list` shows all."),
    ("resume ID", "is done; `contend show"),
    ("rate ID 11", "between 1 and 10"),
    ("rate ID good", "must be a whole number"),
    ("export ID --format pdf", "Known: md, html"),
    ("delete ID", "add --yes"),
    ("prune", "--older 90d, or --damaged"),
    ("prune --older 3months --yes", "write it as 90d, 12w or 36h"),
    ("resolve ID yes", "is not a forecast"),
    ("list --limit ten", "must be a whole number"),
    ("serve --port 99999", "less than or equal to 65535"),
    ("serve --host 0.0.0.0", "set CONTEND_SERVICE_TOKEN"),
    ("DATABASE_URL=mysql://x list", "must begin with postgresql://"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, ModelServer]]:
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    with ModelServer(debaters(), models=["m"]) as server:
        yield Command(folder / "home", server), server


@pytest.fixture(scope="module")
def finished(prepared: tuple[Command, ModelServer]) -> str:
    one_round = ["--set", "min_rounds=1", "--set", "max_rounds=1"]
    asked = prepared[0].here("ask", "Done?", "-m", "openai:m", "--json", *one_round)
    return str(asked.json["id"])


@pytest.mark.parametrize(("line", "said"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_mistake_is_explained_in_one_line_and_changes_nothing(
    prepared: tuple[Command, ModelServer], finished: str, line: str, said: str
) -> None:
    contend, server = prepared
    words = shlex.split(line.replace(" ID", f" {finished[:8]}"))
    split = next(at for at, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
    env = dict(word.split("=", 1) for word in words[:split])
    calls, files = len(server.calls), sorted(contend.home.parent.glob("*"))
    ended = contend.here(*words[split:], stdin="", **env)
    assert (ended.code, ended.out) == (2, "")
    (explained,) = ended.err.splitlines()
    assert explained.startswith("Error: ")
    assert explained.endswith((".", "?", "'")), explained
    assert said in explained
    assert len(explained) < 300
    assert len(server.calls) == calls
    assert sorted(contend.home.parent.glob("*")) == files
    assert [each["id"] for each in contend.here("list", "--json").json] == [finished]
