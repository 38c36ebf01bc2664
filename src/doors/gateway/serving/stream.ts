import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'
import type { Reply } from '../../door/reply.ts'

/** Answers with server-sent events, then `[DONE]`; an error midway is the last event. */
export async function sendEvents(
  reply: Reply,
  work: (send: (event: unknown) => void) => Promise<void>,
): Promise<void> {
  const { raw } = reply
  reply.begin('text/event-stream; charset=utf-8')
  const send = (event: unknown): void => void raw.write(`data: ${jsonWithoutSecrets(event)}\n\n`)
  try {
    await work(send)
  } catch (cause) {
    send({ error: { message: (cause as Error).message, type: 'internal', code: 500 } })
  }
  raw.end('data: [DONE]\n\n')
}
