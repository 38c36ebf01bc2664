import { taskWorld } from '../../../src/worlds/tau2/evaluate.ts'
import { Tau2World } from '../../../src/worlds/tau2/world.ts'
import {
  argumentsOf,
  differ,
  lengthOf,
  type Problem,
  sha256,
  type Tau2Row,
  type Tau2Source,
} from './source.ts'

/** Makes the calls of a row in order and compares every answer, then the databases. */
export function checkReplay(row: Tau2Row, name: string, source: Tau2Source): Problem {
  const domain = source.domain(name)
  const task = row.task === null || row.task === undefined ? undefined : source.task(name, row.task)
  const world = task ? taskWorld(domain, task) : new Tau2World(domain)
  for (const [index, call] of row.calls.entries()) {
    const answer = world.respond({
      requestor: call.req,
      name: call.name,
      arguments: argumentsOf(call.args),
    })
    const problem = checkAnswer(call, answer)
    if (problem) return `call ${index} ${call.name}(${call.args.slice(0, 200)}): ${problem}`
  }
  return differ('hashes', [row.db_hash, row.user_db_hash], [world.hash(), world.userHash()])
}

/** Compares an answer with a recorded one, of which long ones are kept as hashes. */
export function checkAnswer(
  wanted: Tau2Row,
  { content, error }: { readonly content: string; readonly error: boolean },
): Problem {
  if (wanted.content !== undefined)
    return differ('answer', [wanted.content, wanted.error], [content, error])
  const got = [lengthOf(content), sha256(content), error]
  return differ(
    `answer ${content.slice(0, 160)}`,
    [wanted.content_len, wanted.content_sha256, wanted.error],
    got,
  )
}
