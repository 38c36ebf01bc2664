import type {
  OutputPart,
  OutputText,
  ParsedOutput,
  ParserOptions,
  StreamingParser,
} from '../parser.ts'
import { blockReader, type StageReader } from './blocks.ts'
import { EndKeeper } from './endings.ts'
import { type ReasoningContext, reasoningReadings } from './reasoning-formats.ts'
import { type Reader, Source } from './source.ts'
import { toolReadings } from './tool-formats.ts'

/** Opens the stages that an output passes: thinking, calls, the end of the turn. */
export function openOutput(
  options: ParserOptions,
  stageReaders: readonly StageReader[] = readersOf(options),
): StreamingParser {
  const fresh: OutputPart[] = []
  const all: OutputPart[] = []
  const add = (part: OutputPart) => {
    all.push(part)
    if (part.kind !== 'reasoning' || part.text !== '') fresh.push(part)
  }
  const ends = new EndKeeper(text => add({ kind: 'content', text }))
  const stages = openStages(stageReaders, options.controls, {
    push: (text, control) => ends.add(text, options.controls && control),
    end: () => ends.end(),
    other(part) {
      ends.flush()
      add(part)
    },
  })
  return {
    push(output) {
      for (const piece of pieces(output)) stages.push(piece.text, piece.control)
      return fresh.splice(0)
    },
    end() {
      stages.end()
      return { parts: fresh.splice(0), output: joinParts(all) }
    },
  }
}

const pieces = (output: OutputText) =>
  typeof output === 'string' ? [{ text: output, control: false }] : output

/** The readers of a model's way of writing; they keep no state, so one list serves every output. */
export function readersOf(options: ParserOptions): readonly StageReader[] {
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

/** What takes text in, and passes what is not text on. */
interface Stage {
  push(text: string, control: boolean): void
  end(): void
  other(part: OutputPart): void
}

/** Chains readers: what one leaves as content is what the next one reads. */
function openStages(
  readers: readonly StageReader[],
  controls: readonly string[] | undefined,
  last: Stage,
): Stage {
  const [reader, ...rest] = readers
  if (!reader) return last
  const next = openStages(rest, controls, last)
  const source = new Source(controls)
  // Text is passed on in runs: hostile input would otherwise be passed character by character.
  let pending = ''
  const flush = () => {
    const text = pending
    pending = ''
    if (text !== '') next.push(text, false)
  }
  const other = (part: OutputPart) => {
    flush()
    last.other(part)
  }
  const running: Reader<void> = reader(source, {
    content(text, start) {
      let from = start
      for (const [begin, end] of source.controls(start, start + text.length)) {
        pending += text.slice(from - start, begin - start)
        flush()
        next.push(text.slice(begin - start, end - start), true)
        from = end
      }
      pending += from === start ? text : text.slice(from - start)
    },
    reasoning: text => other({ kind: 'reasoning', text }),
    call: call => other({ kind: 'call', call }),
  })
  const run = () => {
    running.next()
    flush()
  }
  run()
  return {
    push(text, control) {
      source.push(text, control)
      run()
    },
    end() {
      source.end()
      run()
      next.end()
    },
    other,
  }
}

/** Puts parts together again: neighbours of one kind become one. */
function joinParts(all: readonly OutputPart[]): ParsedOutput {
  const parts = runs(all).flatMap(run => joined(run))
  const text = (kind: 'reasoning' | 'content') =>
    parts.map(part => (part.kind === kind ? part.text : '')).join('')
  return {
    reasoning: all.some(part => part.kind === 'reasoning') ? text('reasoning') : undefined,
    content: text('content'),
    calls: parts.flatMap(part => (part.kind === 'call' ? [part.call] : [])),
    parts,
  }
}

function joined(run: readonly OutputPart[]): OutputPart[] {
  const kind = run[0]?.kind
  if (kind === undefined || kind === 'call') return [...run]
  const text = run.map(part => (part.kind === 'call' ? '' : part.text)).join('')
  return text === '' ? [] : [{ kind, text }]
}

/** Runs of neighbours of one kind; empty reasoning stands between nothing. */
function runs(parts: readonly OutputPart[]): OutputPart[][] {
  const found: OutputPart[][] = []
  for (const part of parts) {
    if (part.kind !== 'call' && part.text === '') continue
    const last = found.at(-1)
    if (last?.[0]?.kind === part.kind) last.push(part)
    else found.push([part])
  }
  return found
}
