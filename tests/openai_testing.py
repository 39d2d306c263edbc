"""What the tests of the `openai` package share: the package, `whippet serve` with the default model for a whole module,
and how it is asked."""

import pathlib
import sys
import unittest

import python_packages
from page_testing import free_port
from serving import serve

BUILD, BINARY = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
python_packages.use(BUILD)
try:
    import openai
    from langchain_openai import ChatOpenAI
except ImportError as error:
    print(f"skipped: {error}: tests/python_packages.py {BUILD}")
    sys.exit(0)

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about a dog."}]
ENDLESS = {"max_tokens": 4000, "extra_body": {"ignore_eos": True}}


class Cleanups:
    """What serve() wants of a class, for the whole module."""

    addClassCleanup = staticmethod(unittest.addModuleCleanup)


def serve_module():
    """A module's setUpModule."""
    address, why_not = serve(Cleanups, BINARY, free_port())
    if not address:
        raise unittest.SkipTest(why_not)
    ClientCase.address = address
    ClientCase.client = openai.OpenAI(base_url=address + "v1", api_key="none", max_retries=0, timeout=120)
    unittest.addModuleCleanup(ClientCase.client.close)
    ClientCase.model = ClientCase.client.models.list().data[0].id


class ClientCase(unittest.TestCase):
    address = client = model = None

    def chat(self, messages=None, **options):
        options = {"model": self.model, "messages": messages or FRANCE, "temperature": 0, "max_tokens": 20, **options}
        return self.client.chat.completions.create(**options)

    def complete(self, prompt="The capital of France is", **options):
        options = {"model": self.model, "prompt": prompt, "temperature": 0, "max_tokens": 8, **options}
        return self.client.completions.create(**options)

    def said(self, **options):
        return self.chat(**options).choices[0].message.content

    def streamed(self, **options):
        """The texts of a streamed chat's choices, and its chunks."""
        chunks = list(self.chat(stream=True, **options))
        texts = {}
        for chunk in chunks:
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
        return [texts[index] for index in sorted(texts)], chunks

    def post(self, path, body):
        """A route that the package has no call for."""
        return self.client.with_options(base_url=self.address).post(path, cast_to=object, body={"model": self.model, **body})
