import type { Renderer } from '@espalier/text'
import type { ReadPath, ReadSpan, ReadTrajectory } from '../sinks/reader.ts'

/**
 * Encodes a trajectory's messages with the renderer. The tokens are not the sampled ones and have no
 * log-probabilities, so the trajectory is marked `re-encoded`.
 */
export function encodeAgain(source: ReadTrajectory, renderer: Renderer): ReadTrajectory {
  const path = toPath(source, renderer)
  return {
    ...source,
    paths: path ? [path] : [],
    fidelity: { kind: 're-encoded', forks: [] },
  }
}

function toPath({ messages, tools }: ReadTrajectory, renderer: Renderer): ReadPath | undefined {
  const replies = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
  const first = replies[0]
  if (first === undefined || first === 0) return undefined
  const version = { from: 0, to: 0 }
  const spans: ReadSpan[] = []
  let ids = renderer.render(messages.slice(0, first), tools)
  spans.push({ start: 0, end: ids.length, origin: 'prompt', version })
  replies.forEach((index, number) => {
    const message = messages[index]!
    if (message.role !== 'assistant') return
    const turnStart = ids.length
    ids = joined(ids, renderer.encodeReply(message, tools))
    spans.push({ start: turnStart, end: ids.length, origin: 'sampled', version })
    const next = replies[number + 1]
    if (next === undefined) return
    const given = messages.slice(0, next)
    const observed = next - index - 1
    const bridge = renderer.bridge({ path: ids, turnStart, messages: given, observed, tools })
    const start = ids.length
    ids = joined(bridge.kind === 'extends' ? ids : ids.subarray(0, bridge.keep), bridge.ids)
    spans.push({ start, end: ids.length, origin: 'observed', version })
  })
  return { ids, logprobs: new Float32Array(ids.length).fill(Number.NaN), spans }
}

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const all = new Int32Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  return all
}
