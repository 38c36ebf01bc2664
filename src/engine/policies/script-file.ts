import { readFile } from 'node:fs/promises'
import {
  type ScriptedAnswer,
  type ScriptedOptions,
  type ScriptedPolicy,
  scripted,
} from './scripted.ts'
import {
  asArray,
  asIds,
  asObject,
  asText,
  isLogprob,
  parseJson,
  shown,
  wrong,
  wrongLogprob,
} from './transport/reading.ts'
import { ServerError } from './transport/server-error.ts'

/** Plays the script in a file: JSONL, one answer per line, `{"text"}` or `{"ids","logprobs"?}`. */
export async function openScript(
  file: string,
  options: ScriptedOptions = {},
): Promise<ScriptedPolicy> {
  const answers = readScript(await readFile(file, 'utf8'), file)
  if (answers.length === 0) throw new Error(`${file} holds no answers: one per line, {"text": "…"}`)
  return scripted(answers, { name: `scripted:${file}`, ...options })
}

/** Reads a script; `file` names it in errors. */
export function readScript(text: string, file: string): readonly ScriptedAnswer[] {
  try {
    // Editors of some systems begin a file with a byte-order mark.
    return text
      .replace(/^\uFEFF/, '')
      .split('\n')
      .flatMap((line, index) => {
        return line.trim() === '' ? [] : [readAnswer(line, `${file}, line ${index + 1}`)]
      })
  } catch (cause) {
    // A wrong file is a mistake of whoever named it; only a server's answer is a server's error.
    throw cause instanceof ServerError ? new Error(cause.message) : cause
  }
}

const known = ['text', 'ids', 'logprobs', 'task']

function readAnswer(line: string, where: string): ScriptedAnswer {
  const fields = asObject(parseJson(line, where), where, 'an answer')
  const unknown = Object.keys(fields).find(name => !known.includes(name))
  if (unknown !== undefined) {
    throw wrong(where, `an answer has no "${unknown}". Known: ${known.join(', ')}`)
  }
  const { text, ids, logprobs, task } = fields
  if ((text === undefined) === (ids === undefined)) {
    throw wrong(where, `an answer has either "text" or "ids", got ${shown(fields)}`)
  }
  const forTask = task === undefined ? {} : { task: asTask(task, where) }
  if (text === undefined) return { ...readTokens(ids, logprobs, where), ...forTask }
  if (logprobs !== undefined) throw wrong(where, 'a text has no "logprobs": give "ids" with them')
  return { text: asText(text, where, 'text'), ...forTask }
}

function asTask(task: unknown, where: string): string {
  return typeof task === 'number' ? String(task) : asText(task, where, 'task')
}

function readTokens(ids: unknown, logprobs: unknown, where: string) {
  const read = asIds(ids, where, 'ids')
  if (logprobs === undefined) return { ids: read }
  const list = asArray(logprobs, where, 'logprobs')
  if (list.length !== read.length) {
    throw wrong(where, `ids has ${read.length} entries but logprobs ${list.length}`)
  }
  const bad = list.findIndex(value => !isLogprob(value))
  if (bad >= 0) throw wrongLogprob(where, `logprobs[${bad}]`, list[bad])
  return { ids: read, logprobs: Float32Array.from(list as number[]) }
}
