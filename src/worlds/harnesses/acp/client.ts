import { z } from 'zod'
import { packageVersion } from '../../../base/core/process/package-version.ts'
import { late } from '../../../engine/environments/late.ts'
import type { Assignment, Ended } from '../contract.ts'
import type { Inside, InsideProcess } from '../inside/inside.ts'
import { makeFiles } from './files.ts'
import { makePeer, RefusedCall } from './json-rpc.ts'
import { makeTerminals } from './terminals.ts'

/** Most characters of what it answers. */
const mostAnswer = 4 * 2 ** 20

/** The version of the protocol that this client speaks. */
const protocolVersion = 1

const schemas = late(() => ({
  initialized: z.object({ protocolVersion: z.int() }),
  session: z.object({ sessionId: z.string() }),
  stopped: z.object({ stopReason: z.string().max(100) }),
  update: z.object({
    update: z.object({
      sessionUpdate: z.string(),
      content: z.unknown().optional(),
      messageId: z.string().nullish(),
    }),
  }),
  text: z.object({ type: z.literal('text'), text: z.string() }),
  permission: z.object({
    options: z.array(z.object({ optionId: z.string(), kind: z.string() })).min(1),
  }),
}))

/** Talks to an agent over the Agent Client Protocol: a session, one prompt, and its methods until it stops. */
export async function talkAcp(
  process: InsideProcess,
  { inside, assignment }: { readonly inside: Inside; readonly assignment: Assignment },
): Promise<NonNullable<Ended['said']>> {
  const { folder, prompt } = assignment
  const said = gatherAnswer()
  const peer = makePeer(process, {
    requests: {
      'session/request_permission': allow,
      ...makeFiles(inside, folder),
      ...makeTerminals(inside, folder),
    },
    notifications: { 'session/update': said.take },
  })
  const { initialized, session, stopped } = schemas()
  const about = read(
    initialized,
    await peer.ask('initialize', {
      protocolVersion,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: 'espalier', title: 'Espalier', version: packageVersion() },
    }),
  )
  if (about.protocolVersion !== protocolVersion) {
    throw new Error(
      `it speaks version ${about.protocolVersion} of the Agent Client Protocol, not ${protocolVersion}`,
    )
  }
  const { sessionId } = read(
    session,
    await peer.ask('session/new', { cwd: folder, mcpServers: [] }),
  )
  const content = [{ type: 'text', text: prompt }]
  const { stopReason } = read(
    stopped,
    await peer.ask('session/prompt', { sessionId, prompt: content }),
  )
  return { answer: said.answer(), stop: stopReason }
}

function read<T>(schema: z.ZodType<T>, answer: unknown): T {
  const found = schema.safeParse(answer)
  if (found.success) return found.data
  const problem = z.prettifyError(found.error).replaceAll('\n', ' ').slice(0, 300)
  throw new Error(`it does not answer by the Agent Client Protocol: ${problem}`)
}

/** Everything it asks for happens within its sandbox, so it may. */
function allow(params: unknown): object {
  const found = schemas().permission.safeParse(params)
  if (!found.success) throw new RefusedCall(-32602, 'there are no options to choose from')
  const { options } = found.data
  const chosen =
    options.find(({ kind }) => kind === 'allow_once') ??
    options.find(({ kind }) => kind.startsWith('allow')) ??
    options[0]!
  return { outcome: { outcome: 'selected', optionId: chosen.optionId } }
}

/** Gathers what an agent says; what it said before it did something else is not its answer. */
function gatherAnswer() {
  let answer = ''
  let isOver = true
  let message: string | undefined
  return {
    answer: () => answer.trim(),
    take(params: unknown): void {
      const found = schemas().update.safeParse(params)
      if (!found.success) return
      const { sessionUpdate, content, messageId } = found.data.update
      if (sessionUpdate === 'tool_call') isOver = true
      if (sessionUpdate !== 'agent_message_chunk') return
      const text = schemas().text.safeParse(content)
      if (!text.success) return
      if (isOver || (messageId ?? message) !== message) answer = ''
      isOver = false
      message = messageId ?? undefined
      answer += text.data.text
      if (answer.length > mostAnswer)
        throw new Error(`its answer has more than ${mostAnswer} characters`)
    },
  }
}
