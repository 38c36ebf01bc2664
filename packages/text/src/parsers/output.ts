import { blockReader, type StageReader } from './blocks.ts'
import { EndKeeper } from './endings.ts'
import { type ReasoningContext, reasoningReadings } from './formats/reasoning-formats.ts'
import { toolReadings } from './formats/tool-formats.ts'
import type {
  OutputPart,
  OutputText,
  ParsedCall,
  ParsedOutput,
  ParserOptions,
  StreamingParser,
} from './parser.ts'
import { type Reader, Source } from './source.ts'

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
  const ends = new EndKeeper(text => add({ kind: 'content', text }), controls !== undefined)
  const put = (part: OutputPart) => {
    ends.flush()
    add(part)
  }
  const open = (next: Stage, reader: StageReader) =>
    new ReadingStage(reader, new Source(controls), { next, put })
  return readers.reduceRight<Stage>(open, ends)
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

/** What takes text in. */
interface Stage {
  /** Takes text that is to be read by the next run. */
  add(text: string, control: boolean): void
  run(): void
  end(): void
}

/** Where a stage puts what it reads. */
interface Ways {
  /** Reads what is left as content. */
  readonly next: Stage
  /** Takes what is not content. */
  readonly put: (part: OutputPart) => void
}

/** A reader with the text it reads. */
class ReadingStage implements Stage {
  readonly #source: Source
  readonly #ways: Ways
  readonly #running: Reader<void>
  /** Text is passed on in runs: hostile input would otherwise be passed character by character. */
  #pending = ''

  constructor(reader: StageReader, source: Source, ways: Ways) {
    this.#source = source
    this.#ways = ways
    this.#running = reader(source, {
      content: (text, start) => this.#pass(text, start),
      reasoning: text => this.#put({ kind: 'reasoning', text }),
      call: call => this.#put({ kind: 'call', call }),
    })
  }

  add(text: string, control: boolean): void {
    this.#source.push(text, control)
  }

  run(): void {
    this.#running.next()
    this.#flush()
  }

  end(): void {
    this.#source.end()
    this.#running.next()
    this.#flush()
    this.#ways.next.end()
  }

  #put(part: OutputPart): void {
    this.#flush()
    this.#ways.put(part)
  }

  #pass(text: string, start: number): void {
    let from = start
    for (const [begin, end] of this.#source.controls(start, start + text.length)) {
      this.#pending += text.slice(from - start, begin - start)
      this.#passPending()
      this.#ways.next.add(text.slice(begin - start, end - start), true)
      from = end
    }
    this.#pending += from === start ? text : text.slice(from - start)
  }

  #passPending(): void {
    const text = this.#pending
    this.#pending = ''
    if (text !== '') this.#ways.next.add(text, false)
  }

  #flush(): void {
    this.#passPending()
    this.#ways.next.run()
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
