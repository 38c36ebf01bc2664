import {
  bytesOf,
  floatsOf,
  intsOf,
  longBytes,
  longsOf,
  makeWireWriter,
  numberOf,
  rawBytes,
  readWire,
  textOf,
  type WireFields,
} from '../../src/engine/policies/tinker/wire.ts'

// The server's side of Tinker's protobuf messages: what a client sends is read, results are written.

/** A body of `forward_backward`, in the shape that it has as JSON. */
export function readPass(bytes: Uint8Array) {
  const fields = readWire(bytes)
  const config = bytesOf(fields, 7).map(readWire)
  return {
    model_id: textOf(fields, 1),
    seq_id: numberOf(fields, 2),
    forward_only: numberOf(fields, 6) === 1,
    forward_backward_input: {
      data: bytesOf(fields, 3).map(readWire).map(readDatum),
      loss_fn: textOf(fields, 4),
      loss_fn_config: Object.fromEntries(
        config.map(entry => [textOf(entry, 1), numberOf(readWire(bytesOf(entry, 2)[0]!), 1)]),
      ),
    },
  }
}

function readDatum(datum: WireFields) {
  return {
    model_input: {
      chunks: bytesOf(datum, 1).map(chunk => {
        const text = readWire(bytesOf(readWire(chunk), 1)[0]!)
        return { type: 'encoded_text', tokens: Array.from(intsOf(bytesOf(text, 1)[0]!)) }
      }),
    },
    loss_fn_inputs: Object.fromEntries(
      bytesOf(datum, 2)
        .map(readWire)
        .map(entry => [textOf(entry, 1), readTensor(readWire(bytesOf(entry, 2)[0]!))]),
    ),
    model_input_spans: bytesOf(datum, 3).map(readWire).map(readSpan),
    loss_fn_input_spans: bytesOf(datum, 4).map(readWire).map(readSpan),
  }
}

/** A span as text: where it is from, the sequence, and which of its tokens. */
function readSpan(span: WireFields): string {
  const [prompt] = bytesOf(span, 1)
  const own = readWire((prompt ?? bytesOf(span, 2)[0])!)
  const offset = numberOf(own, 2)
  return `${prompt ? 'prompt' : 'sampled'} ${textOf(own, 1)} ${offset}-${offset + numberOf(own, 3)}`
}

function readTensor(tensor: WireFields) {
  const dense = bytesOf(tensor, 1)[0]!
  const isFloat = numberOf(tensor, 3) === 1
  return { data: isFloat ? Array.from(floatsOf(dense)) : [...longsOf(dense)] }
}

/** What a pass gave, as protobuf; every output has its log-probabilities. */
export function writePassOutput(outputs: readonly (readonly number[])[], loss: number): Uint8Array {
  const flat = Float32Array.from(outputs.flat())
  const ends = [0]
  for (const output of outputs) ends.push(ends.at(-1)! + output.length * 4)
  const tensor = makeWireWriter().bytes(1, rawBytes(flat)).bytes(2, longBytes(ends)).integer(3, 1)
  const field = makeWireWriter().bytes(1, 'logprobs').bytes(2, tensor.finish())
  const record = makeWireWriter().bytes(2, field.finish()).integer(3, outputs.length)
  const metric = makeWireWriter().bytes(1, 'loss:sum').double(2, loss)
  return makeWireWriter()
    .bytes(1, 'ArrayRecord')
    .bytes(2, record.finish())
    .bytes(3, metric.finish())
    .finish()
}

/** What was sampled, as protobuf. */
export function writeSampleOutput(
  sequences: readonly {
    readonly tokens: readonly number[]
    readonly logprobs: readonly number[]
    readonly stop_reason: string
  }[],
  prompt: readonly (number | null)[] | null,
): Uint8Array {
  const writer = makeWireWriter()
  for (const { tokens, logprobs, stop_reason } of sequences) {
    const own = makeWireWriter().integer(1, stop_reason === 'length' ? 1 : 0)
    own.bytes(2, rawBytes(Int32Array.from(tokens))).bytes(3, rawBytes(Float32Array.from(logprobs)))
    writer.bytes(1, own.finish())
  }
  const numbers = prompt?.map(value => value ?? Number.NaN)
  return numbers ? writer.bytes(2, rawBytes(Float32Array.from(numbers))).finish() : writer.finish()
}
