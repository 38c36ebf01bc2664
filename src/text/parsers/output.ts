import type {
  OutputPart,
  OutputText,
  ParsedOutput,
  ParserOptions,
  StreamingParser,
} from '../parser.ts'
import { blockReader, type Sink, type StageReader } from './blocks.ts'
import { endingReader } from './endings.ts'
import { type ReasoningContext, reasoningReadings } from './reasoning-formats.ts'
import { type Reader, Source } from './source.ts'
import { toolReadings } from './tool-formats.ts'

/** Opens the stages that an output passes: thinking, calls, the end of the turn. */
export function openOutput(options: ParserOptions): StreamingParser {
  const parts: OutputPart[] = []
  const joined = new Joiner()
  const out: Sink = {
    content: text => add({ kind: 'content', text }),
    reasoning: text => add({ kind: 'reasoning', text }),
    call: call => add({ kind: 'call', call }),
  }
  const add = (part: OutputPart) => {
    if (part.kind === 'content' && part.text === '') return
    joined.add(part)
    if (part.kind !== 'reasoning' || part.text !== '') parts.push(part)
  }
  const stages = openStages([...readers(options), endingReader], options.controls, out)
  return {
    push(output) {
      for (const piece of pieces(output)) stages.push(piece.text, piece.control)
      return parts.splice(0)
    },
    end() {
      stages.end()
      return { parts: parts.splice(0), output: joined.output() }
    },
  }
}

const pieces = (output: OutputText) =>
  typeof output === 'string' ? [{ text: output, control: false }] : output

function readers(options: ParserOptions): StageReader[] {
  const { schemas, controls, opensInReasoning } = options
  const reasoning = options.reasoning && reasoningReadings[options.reasoning]
  const tools = options.tools && toolReadings[options.tools]
  const context: ReasoningContext = {
    schemas,
    controls,
    inside: opensInReasoning,
    readsCalls: tools !== undefined,
  }
  const thinking = reasoning?.kind === 'tags' ? reasoning.thinking(context) : undefined
  const first = reasoning?.kind === 'reader' ? [reasoning.reader(context)] : []
  if (tools?.kind === 'blocks') return [...first, blockReader(tools.blocks(context), thinking)]
  if (thinking) first.push(blockReader({}, thinking))
  return tools ? [...first, tools.reader] : first
}

interface Stages {
  push(text: string, control: boolean): void
  end(): void
}

/** Chains readers: what one leaves as content is what the next one reads. */
function openStages(
  readers: readonly StageReader[],
  controls: readonly string[] | undefined,
  out: Sink,
): Stages {
  const [reader, ...rest] = readers
  if (!reader) return { push: text => out.content(text, 0), end: () => {} }
  const next = openStages(rest, controls, out)
  const source = new Source(controls)
  const running: Reader<void> = reader(source, {
    ...out,
    content(text, start) {
      let from = start
      for (const [begin, end] of source.controls(start, start + text.length)) {
        next.push(text.slice(from - start, begin - start), false)
        next.push(text.slice(begin - start, end - start), true)
        from = end
      }
      next.push(text.slice(from - start), false)
    },
  })
  running.next()
  return {
    push(text, control) {
      source.push(text, control)
      running.next()
    },
    end() {
      source.end()
      running.next()
      next.end()
    },
  }
}

/** Puts parts together again. */
class Joiner {
  readonly #parts: OutputPart[] = []

  add(part: OutputPart): void {
    this.#parts.push(part)
  }

  output(): ParsedOutput {
    const parts: OutputPart[] = []
    const texts = { reasoning: [] as string[], content: [] as string[] }
    for (const part of this.#parts) {
      if (part.kind !== 'call') texts[part.kind].push(part.text)
    }
    for (const group of groups(this.#parts)) {
      const [first] = group
      if (first === undefined || first.kind === 'call') parts.push(...group)
      else {
        const text = group.map(part => (part.kind === 'call' ? '' : part.text)).join('')
        if (text !== '') parts.push({ kind: first.kind, text })
      }
    }
    return {
      reasoning: texts.reasoning.length > 0 ? texts.reasoning.join('') : undefined,
      content: texts.content.join(''),
      calls: this.#parts.flatMap(part => (part.kind === 'call' ? [part.call] : [])),
      parts,
    }
  }
}

/** Runs of neighbours of one kind. */
function groups(parts: readonly OutputPart[]): OutputPart[][] {
  const found: OutputPart[][] = []
  for (const part of parts) {
    const last = found.at(-1)
    if (last?.[0]?.kind === part.kind) last.push(part)
    else found.push([part])
  }
  return found
}
