import type {
  OutputPart,
  OutputText,
  ParsedCall,
  ParsedOutput,
  ParserOptions,
  StreamingParser,
} from '../parser.ts'
import { blockReader, type StageReader } from './blocks.ts'
import { EndKeeper } from './endings.ts'
import { type ReasoningContext, reasoningReadings } from './reasoning-formats.ts'
import { type Reader, Source } from './source.ts'
import { toolReadings } from './tool-formats.ts'

/** Parses an output that is all there: no reader has to wait. */
export function parseOutput(reading: OutputReading, output: OutputText): ParsedOutput {
  const joined = new JoinedParts()
  const stage = openFirstStage(reading, part => joined.add(part))
  feed(stage, output)
  stage.end()
  return joined.output
}

/** Parses an output as it arrives. */
export function openOutput(reading: OutputReading): StreamingParser {
  const fresh: OutputPart[] = []
  const joined = new JoinedParts()
  const stage = openFirstStage(reading, part => {
    joined.add(part)
    if (part.kind !== 'reasoning' || part.text !== '') fresh.push(part)
  })
  return {
    push(output) {
      feed(stage, output)
      stage.run()
      return fresh.splice(0)
    },
    end() {
      stage.end()
      return { parts: fresh.splice(0), output: joined.output }
    },
  }
}

/** How the outputs of a model are read. */
export interface OutputReading {
  /** They keep no state, so one list serves every output. */
  readonly readers: readonly StageReader[]
  readonly controls: readonly string[] | undefined
}

function feed(stage: Stage, output: OutputText): void {
  if (typeof output === 'string') stage.add(output, false)
  else for (const piece of output) stage.add(piece.text, piece.control)
}

/** Opens the stages that an output passes: thinking, calls, the end of the turn. */
function openFirstStage(
  { readers, controls }: OutputReading,
  add: (part: OutputPart) => void,
): Stage {
  const ends = new EndKeeper(text => add({ kind: 'content', text }))
  return openStages(readers, controls, {
    add: (text, control) => ends.add(text, controls && control),
    run() {},
    end: () => ends.end(),
    other(part) {
      ends.flush()
      add(part)
    },
  })
}

/** The readers of a model's way of writing, in the order in which text passes them. */
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
  /** Takes text that is to be read by the next run. */
  add(text: string, control: boolean): void
  run(): void
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
    if (text !== '') next.add(text, false)
  }
  const other = (part: OutputPart) => {
    flush()
    next.run()
    last.other(part)
  }
  const running: Reader<void> = reader(source, {
    content(text, start) {
      let from = start
      for (const [begin, end] of source.controls(start, start + text.length)) {
        pending += text.slice(from - start, begin - start)
        flush()
        next.add(text.slice(begin - start, end - start), true)
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
    next.run()
  }
  return {
    add: (text, control) => source.push(text, control),
    run,
    end() {
      source.end()
      run()
      next.end()
    },
    other,
  }
}

/** Parts put together again: neighbours of one kind become one, what is empty is left out. */
class JoinedParts {
  readonly #calls: ParsedCall[] = []
  readonly #parts: OutputPart[] = []
  #content = ''
  #reasoning: string | undefined

  get output(): ParsedOutput {
    return {
      reasoning: this.#reasoning,
      content: this.#content,
      calls: this.#calls,
      parts: this.#parts,
    }
  }

  add(part: OutputPart): void {
    if (part.kind === 'call') {
      this.#calls.push(part.call)
      this.#parts.push(part)
      return
    }
    const { kind, text } = part
    if (kind === 'content') this.#content += text
    else this.#reasoning = (this.#reasoning ?? '') + text
    if (text === '') return
    const last = this.#parts.at(-1)
    if (last?.kind === kind) this.#parts[this.#parts.length - 1] = { kind, text: last.text + text }
    else this.#parts.push(part)
  }
}
