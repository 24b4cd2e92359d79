"""The plan's input table and Scenario: one GPU, model and traffic, validated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from enginemem.architecture import Architecture, find_model, load_model, model_ids
from enginemem.hardware import Gpu, gpu_ids, load_gpu
from enginemem.inputs import MAX_BYTES, MAX_TOKENS, FieldError, Input, InputTable, InputValue, InvalidInputs, Kind
from enginemem.traffic import Shape
from enginemem.units import Exact, quantity_text


def _gpu_id(text: str) -> str | None:
    lowered = text.strip().lower()
    return lowered if lowered in gpu_ids() else None


def _fixed(*names: str) -> tuple[str, ...]:
    return names


def _count(key: str, label: str, default: str, help_text: str, section: str, *, auto: bool = False) -> Input:
    return Input(key, label, "count", "tokens", default, help_text, section, low=1, auto=auto)


def _knob(
    key: str,
    kind: Kind,
    unit: str,
    help_text: str,
    option: str,
    *,
    low: Exact = 0,
    high: Exact = MAX_TOKENS,
    low_open: bool = False,
    choices: Callable[[], tuple[str, ...]] | None = None,
) -> Input:
    engine, name = key.split(".")
    return Input(
        key, name, kind, unit, "auto", help_text, engine, low, high, low_open, choices, auto=True, option=option
    )


PLAN_INPUTS = InputTable(
    Input("gpu", "GPU", "gpu", "", "h100-sxm", "The part; its memory totals come from the hardware table.", "hardware",
          choices=gpu_ids, resolve=_gpu_id),
    Input("cuda_total", "CUDA total", "quantity", "bytes", "auto",
          "Total memory as cudaMemGetInfo or a start-up log reports it. auto: the GPU's value in the hardware table.",
          "hardware", high=MAX_BYTES, low_open=True, auto=True),
    Input("smi_total", "nvidia-smi total", "quantity", "bytes", "auto",
          "Total memory as nvidia-smi prints it; SGLang's fraction and the engines' size classes read it. "
          "auto: the GPU's value in the hardware table.", "hardware", high=MAX_BYTES, low_open=True, auto=True),
    Input("tp", "Tensor parallel size", "choice", "GPUs", "1", "GPUs that one replica is split over.", "hardware",
          choices=lambda: _fixed("1", "2", "4", "8")),
    Input("model", "Model", "model", "", "llama-3.1-8b", "A preset, or its hub id.", "model",
          choices=model_ids, resolve=find_model),
    Input("weight_dtype", "Weights", "choice", "", "auto",
          "Element type of the linear layers; embeddings, head and norms stay 16-bit. auto: the checkpoint's type.",
          "model", choices=lambda: _fixed("bf16", "fp8"), auto=True),
    Input("kv_dtype", "KV cache", "choice", "", "auto",
          "Element type of the KV cache. auto: the engine's own choice, the model's type unless the checkpoint says "
          "otherwise.", "model", choices=lambda: _fixed("bf16", "fp8", "nvfp4"), auto=True),
    _count("prompt", "Prompt", "2000", "Prompt tokens of a request.", "traffic"),
    _count("max_tokens", "max_tokens", "2000", "Output limit that a request asks for.", "traffic"),
    _count("mean_output", "Mean output", "300", "Mean output tokens before the max_tokens cut.", "traffic"),
    Input("shape", "Output lengths", "choice", "", "geometric",
          "Distribution of output lengths around the mean; the steady state depends on it.", "traffic",
          choices=lambda: _fixed("geometric", "fixed", "uniform")),
    Input("runtime", "Runtime memory", "quantity", "bytes", "3GB",
          "Memory per GPU beside the weights that vLLM and TensorRT-LLM measure at start-up: activation peak, buffers, "
          "graphs, and for TensorRT-LLM also the CUDA context. No formula gives it; a start-up log does.",
          "assumptions", high=MAX_BYTES, assumption=True),
    Input("preload", "In use before SGLang loads", "quantity", "bytes", "0.5GiB",
          "Memory per GPU already taken when SGLang takes its baseline: CUDA context and communicators.",
          "assumptions", high=MAX_BYTES, assumption=True),
    _count("max_model_len", "Maximum model length", "auto",
           "Longest sequence the server accepts. auto: the model's own length.", "model", auto=True),
    _knob("vllm.gpu_memory_utilization", "decimal", "", "Share of the CUDA total that vLLM asks for.",
          "--gpu-memory-utilization", high=1, low_open=True),
    _knob("vllm.max_num_seqs", "count", "requests", "Request cap.", "--max-num-seqs", low=1, high=1_000_000),
    _knob("vllm.max_num_batched_tokens", "count", "tokens", "Token budget of one step.", "--max-num-batched-tokens",
          low=1),
    _knob("vllm.watermark", "decimal", "", "Share of the blocks kept free when a request is admitted.", "--watermark",
          high=1),
    _knob("vllm.kv_cache_memory_bytes", "quantity", "bytes", "KV cache size given outright.",
          "--kv-cache-memory-bytes", high=MAX_BYTES, low_open=True),
    _knob("vllm.num_gpu_blocks_override", "count", "blocks", "Number of KV blocks given outright.",
          "--num-gpu-blocks-override", low=1),
    _knob("vllm.block_size", "choice", "tokens", "Tokens a block.", "--block-size",
          choices=lambda: _fixed("1", "8", "16", "32", "64", "128", "256")),
    _knob("sglang.mem_fraction_static", "decimal", "", "Share of the free memory for weights and KV pool.",
          "--mem-fraction-static", high=1, low_open=True),
    _knob("sglang.chunked_prefill_size", "count", "tokens", "Tokens of one prefill pass; -1 turns chunking off.",
          "--chunked-prefill-size", low=-1),
    _knob("sglang.max_running_requests", "count", "requests", "Request cap.", "--max-running-requests", low=1,
          high=1_000_000),
    _knob("sglang.schedule_conservativeness", "decimal", "", "Scales the share of max_tokens that admission books.",
          "--schedule-conservativeness", high=10),
    _knob("sglang.page_size", "choice", "tokens", "Tokens a page.", "--page-size",
          choices=lambda: _fixed("1", "16", "32", "64", "128")),
    _knob("sglang.cuda_graph_max_bs", "count", "requests", "Largest decode batch that is captured.",
          "--cuda-graph-max-bs-decode", low=1, high=100_000),
    _knob("tensorrt-llm.free_gpu_memory_fraction", "decimal", "", "Share of the free memory for the KV cache.",
          "--kv_cache_free_gpu_memory_fraction", high=1, low_open=True),
    _knob("tensorrt-llm.max_batch_size", "count", "requests", "Request cap.", "--max_batch_size", low=1,
          high=1_000_000),
    _knob("tensorrt-llm.max_num_tokens", "count", "tokens", "Token budget of one step.", "--max_num_tokens", low=1),
    _knob("tensorrt-llm.tokens_per_block", "choice", "tokens", "Tokens a block.", "kv_cache_config.tokens_per_block",
          choices=lambda: _fixed("1", "2", "4", "8", "16", "32", "64", "128")),
    _knob("tensorrt-llm.capacity_scheduler_policy", "choice", "", "Admission policy.",
          "scheduler_config.capacity_scheduler_policy",
          choices=lambda: _fixed("GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH")),
    _knob("tensorrt-llm.enable_chunked_prefill", "flag", "", "Split prompts over steps.", "enable_chunked_prefill"),
    _knob("tensorrt-llm.cuda_graph_batch_sizes", "counts", "requests", "Decode batch sizes that are captured.",
          "cuda_graph_config.batch_sizes", low=1, high=100_000),
    _knob("tensorrt-llm.cuda_graph_padding", "flag", "", "Round a batch up to a captured size.",
          "cuda_graph_config.enable_padding"),
)  # fmt: skip


_SHAPES: Mapping[str, Shape] = {"fixed": "fixed", "uniform": "uniform", "geometric": "geometric"}


class Scenario:
    """One set of inputs, validated: `Scenario(gpu="h200-sxm", prompt="32k", **{"vllm.max_num_seqs": 256})`.

    Raises InvalidInputs, which names every bad field with the value given and what is allowed.
    """

    __slots__ = ("gpu", "max_tokens", "mean_output", "model", "preload", "prompt", "runtime", "shape", "tp", "values")

    gpu: Gpu
    model: Architecture
    values: Mapping[str, InputValue]
    tp: int
    """GPUs."""
    prompt: int
    max_tokens: int
    mean_output: int
    """Tokens; the mean output is the one before the max_tokens cut."""
    shape: Shape
    runtime: Exact
    preload: Exact
    """Bytes per GPU; both are assumptions."""

    def __init__(self, /, **inputs: object) -> None:
        self._fill(inputs, None)

    @classmethod
    def of_model(cls, model: Architecture, /, **inputs: object) -> Scenario:
        """The scenario of the inputs with a model of the user's own in place of the preset.

        Raises InvalidInputs, as the class itself does.
        """
        other = cls.__new__(cls)
        other._fill(inputs, model)
        return other

    def _fill(self, inputs: Mapping[str, object], model: Architecture | None) -> None:
        self._take(PLAN_INPUTS.validate(inputs))
        facts = load_gpu(self.text("gpu"))
        cuda, smi = self.quantity("cuda_total"), self.quantity("smi_total")
        if cuda is not None or smi is not None:
            facts = facts._replace(
                cuda_total=facts.cuda_total if cuda is None else cuda,
                smi_total=facts.smi_total if smi is None else smi,
            )
        self.gpu = facts
        self.model = load_model(self.text("model")) if model is None else model
        errors = self._contradictions()
        if errors:
            raise InvalidInputs(errors)

    def _take(self, values: Mapping[str, InputValue]) -> None:
        self.values = values
        self.tp, self.shape = int(self.text("tp")), _SHAPES[self.text("shape")]
        self.prompt = self.integer("prompt") or 0
        self.max_tokens = self.integer("max_tokens") or 0
        self.mean_output = self.integer("mean_output") or 0
        self.runtime = self.quantity("runtime") or 0
        self.preload = self.quantity("preload") or 0

    def varied(self, key: str, value: InputValue) -> Scenario:
        """This scenario with one traffic or assumption value replaced, for sweeps; the caller vouches for the value."""
        other = Scenario.__new__(Scenario)
        other.gpu, other.model = self.gpu, self.model
        other._take({**self.values, key: value})
        return other

    def with_model(self, model: Architecture) -> Scenario:
        """This scenario with a model of the user's own, such as one from `Architecture.from_hf_config`.

        Raises InvalidInputs when the model does not go with the other inputs. The link of the result names the preset
        that was replaced in its query and carries the configuration in its fragment.
        """
        other = self.varied("model", self.values["model"])
        other.model = model
        errors = other._contradictions()
        if errors:
            raise InvalidInputs(errors)
        return other

    def _contradictions(self) -> list[FieldError]:
        errors = []
        if self.mean_output > self.max_tokens:
            errors.append(FieldError("mean_output", str(self.mean_output), f"at most max_tokens ({self.max_tokens:,})"))
        problem = self.model.tensor_parallel_problem(self.tp)
        if problem is not None:
            fits = [size for size in (1, 2, 4, 8) if self.model.tensor_parallel_problem(size) is None]
            errors.append(FieldError("tp", str(self.tp), f"{', '.join(map(str, fits))} ({problem})"))
        given = "smi_total" if self.values["smi_total"] is not None else "cuda_total"
        cuda, smi = self.gpu.cuda_total, self.gpu.smi_total
        if self.values[given] is not None and cuda is not None and smi is not None and smi < cuda:
            other = f"nvidia-smi total {quantity_text(smi)} is never below the CUDA total {quantity_text(cuda)}"
            value = PLAN_INPUTS[given].text(self.values[given])
            errors.append(FieldError(given, value, f"totals of the same GPU ({other})"))
        errors.extend(self._knob_contradictions())
        return errors

    def _knob_contradictions(self) -> list[FieldError]:
        errors = []
        seqs, budget = self.integer("vllm.max_num_seqs"), self.integer("vllm.max_num_batched_tokens")
        if seqs is not None and budget is not None and budget < seqs:
            errors.append(
                FieldError("vllm.max_num_batched_tokens", str(budget), f"at least vllm.max_num_seqs ({seqs:,})")
            )
        if (
            self.values["vllm.kv_cache_memory_bytes"] is not None
            and self.values["vllm.num_gpu_blocks_override"] is not None
        ):
            allowed = "one of vllm.kv_cache_memory_bytes and vllm.num_gpu_blocks_override: both fix the KV cache"
            errors.append(
                FieldError("vllm.num_gpu_blocks_override", str(self.values["vllm.num_gpu_blocks_override"]), allowed)
            )
        if self.integer("sglang.chunked_prefill_size") == 0:
            errors.append(FieldError("sglang.chunked_prefill_size", "0", "auto, -1 (off) or at least 1"))
        return errors

    @property
    def has_own_model(self) -> bool:
        """Whether the model is another than the preset that the inputs name."""
        return self.model.id != self.text("model")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario) or self.values != other.values:
            return False
        return self.model is other.model or self.model == other.model

    def __hash__(self) -> int:
        return hash(tuple(self.values.items()))

    def __repr__(self) -> str:
        given = [f"{key}={text}" for key, text in self.non_defaults().items()]
        return f"Scenario({', '.join([*given, *([self.model.name] if self.has_own_model else [])])})"

    def non_defaults(self) -> dict[str, str]:
        """The inputs that differ from their defaults, as canonical text in canonical order."""
        defaults = PLAN_INPUTS.defaults()
        return {key: PLAN_INPUTS[key].text(value) for key, value in self.values.items() if value != defaults[key]}

    def link(self) -> str:
        """The versioned query that opens this scenario, such as `?v=1&gpu=h200-sxm`.

        A model of the user's own follows in the fragment, `#config=...`, unless it is too long (`link.fragment`).
        """
        from enginemem.link import encode  # noqa: PLC0415 - link builds on scenario

        return encode(self)

    def quantity(self, key: str) -> Exact | None:
        """A quantity in bytes; None for auto."""
        value = self.values[key]
        return value if isinstance(value, (int, Fraction)) else None

    def integer(self, key: str) -> int | None:
        """A whole number (also of a numeric choice such as a block size); None for auto."""
        value = self.values[key]
        if isinstance(value, str):
            return int(value)
        return value if isinstance(value, int) else None

    def decimal(self, key: str) -> float | None:
        """A fraction as the double nearest to the given decimal, as the engine would parse it; None for auto."""
        value = self.values[key]
        return float(value) if isinstance(value, (int, Fraction)) else None

    def text(self, key: str) -> str:
        """A name; `auto` for auto."""
        value = self.values[key]
        return value if isinstance(value, str) else "auto"

    def flag(self, key: str) -> bool | None:
        """A switch; None for auto."""
        value = self.values[key]
        return value if isinstance(value, bool) else None

    def counts(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers; None for auto."""
        value = self.values[key]
        return value if isinstance(value, tuple) else None
