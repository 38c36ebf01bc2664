import { type ByteScanner, closing, comma } from '../transport/byte-scanner.ts'
import { ListCutter } from '../transport/list-cutter.ts'
import type { Tokens } from '../transport/pair-list.ts'
import { type Fields, isId, isLogprob } from '../transport/reading.ts'
import type { Asked } from './answer-reading.ts'
import { type Generated, spanNames } from './generated.ts'
import { cachedTokens } from './vllm-answer.ts'

/**
 * Reads an answer with one choice straight from its bytes: nearly all of it is lists of numbers, and parsing those as
 * JSON makes hundreds of objects of which nothing is kept. Undefined if anything in it is unusual: `readChoices`
 * then reads the answer, and says what is wrong with it.
 */
export function readChoiceBody(body: Buffer, asked: Asked): Generated | undefined {
  if (asked.width > 0) return undefined
  const lists = new ListCutter(body)
  const count = lists.take('token_ids', readIds)
  if (count === undefined || count === 0) return undefined
  const tokens = tokensOf(count)
  if (!takeRows(lists, tokens) && !takeColumns(lists, tokens)) return undefined
  lists.take('prompt_token_ids', scanner => scanner.passes(promptOf(asked.sent)) || undefined)
  const answer = lists.parseRest()
  const choice = answer && onlyChoice(answer)
  if (!choice || !isWhole(choice)) return undefined
  const finish = finishes.get(choice.finish_reason)
  return finish && generatedOf(answer, choice, { tokens, finish, where: asked.where })
}

function generatedOf(
  answer: Fields,
  choice: Fields,
  { tokens, finish, where }: Pick<Generated, 'finish'> & { tokens: Tokens; where: string },
): Generated {
  // Named one by one: Node 20 takes many times as long to add to what was spread.
  return {
    ids: tokens.ids,
    logprobs: tokens.logprobs,
    finish,
    top: undefined,
    weights: spanNames(choice.weight_versions),
    promptTokens: undefined,
    cachedTokens: cachedTokens(answer, where),
    experts: choice.routed_experts ?? undefined,
  }
}

const finishes: ReadonlyMap<unknown, Generated['finish']> = new Map(
  (['stop', 'length', 'abort'] as const).map(kind => [kind, { kind }]),
)

/** Memory for ids until their number is known. */
let keptIds = new Int32Array(1024)

function readIds(scanner: ByteScanner): number | undefined {
  if (scanner.byte === closing) return 0
  for (let count = 0; ; ) {
    const id = scanner.readId()
    if (!isId(id)) return undefined
    if (count === keptIds.length) {
      const short = keptIds
      keptIds = new Int32Array(count * 2)
      keptIds.set(short)
    }
    keptIds[count++] = id
    if (scanner.byte === closing) return count
    if (scanner.next() !== comma) return undefined
  }
}

/** The ids that were kept, with room for their log-probabilities, in one piece of memory. */
function tokensOf(count: number): Tokens {
  const memory = new ArrayBuffer(count * 8)
  const ids = new Int32Array(memory, 0, count)
  ids.set(keptIds.subarray(0, count))
  return { ids, logprobs: new Float32Array(memory, count * 4) }
}

/** Reads as many items as there are tokens, with commas between them; whether all were as expected. */
function readEach(
  scanner: ByteScanner,
  count: number,
  read: (index: number) => boolean,
): true | undefined {
  for (let index = 0; index < count; index++) {
    if (index > 0 && scanner.next() !== comma) return undefined
    if (!read(index)) return undefined
  }
  return true
}

function readLogprob(scanner: ByteScanner, { logprobs }: Tokens, index: number): boolean {
  const logprob = scanner.readNumber()
  logprobs[index] = logprob
  return isLogprob(logprob)
}

const rowStart = Buffer.from('{"token_id":')
const rowLogprob = Buffer.from(',"logprob":')
const rowEnd = Buffer.from(']}')

/** `generate` has an entry per token, which ends with a list of candidates. */
function takeRows(lists: ListCutter, tokens: Tokens): boolean {
  const read = lists.take('content', scanner =>
    readEach(scanner, tokens.ids.length, index => {
      const isRight =
        scanner.passes(rowStart) &&
        scanner.readId() === tokens.ids[index] &&
        scanner.passes(rowLogprob) &&
        readLogprob(scanner, tokens, index)
      scanner.seek(closing)
      return isRight && scanner.passes(rowEnd)
    }),
  )
  return read === true
}

const nameStart = Buffer.from('"token_id:')
const nameEnd = Buffer.from('"')

/** `completions` has lists side by side; nobody asked for the candidates, which are listed all the same. */
function takeColumns(lists: ListCutter, tokens: Tokens): boolean {
  const { length } = tokens.ids
  const skip = (scanner: ByteScanner): true => {
    scanner.seek(closing)
    return true
  }
  lists.take('text_offset', skip)
  lists.take('top_logprobs', skip)
  const names = lists.take('tokens', scanner =>
    readEach(
      scanner,
      length,
      index =>
        scanner.passes(nameStart) &&
        scanner.readId() === tokens.ids[index] &&
        scanner.passes(nameEnd),
    ),
  )
  const logprobs = lists.take('token_logprobs', scanner =>
    readEach(scanner, length, index => readLogprob(scanner, tokens, index)),
  )
  return names === true && logprobs === true
}

/** The text of the ids in a body that was sent: a server that repeats them must repeat them exactly. */
function promptOf(sent: Buffer): Buffer {
  const from = sent.indexOf('[') + 1
  return sent.subarray(from, sent.indexOf(']', from))
}

function onlyChoice({ choices }: Fields): Fields | undefined {
  if (!Array.isArray(choices) || choices.length !== 1) return undefined
  return (choices[0] as Fields | null) ?? undefined
}

/** Whether all lists were cut out of the right fields: empty ones must be left there. */
function isWhole({ token_ids: ids, prompt_token_ids: prompt, logprobs }: Fields): boolean {
  const { content, token_logprobs, tokens } = (logprobs ?? {}) as Fields
  const isTaken =
    content === undefined ? isEmpty(token_logprobs) && isEmpty(tokens) : isEmpty(content)
  return isEmpty(ids) && isTaken && (prompt === undefined || prompt === null || isEmpty(prompt))
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}
