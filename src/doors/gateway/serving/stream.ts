import type { FastifyReply } from 'fastify'
import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'

/** Answers with server-sent events, then `[DONE]`; an error midway is the last event. */
export async function sendEvents(
  reply: FastifyReply,
  work: (send: (event: unknown) => void) => Promise<void>,
): Promise<FastifyReply> {
  reply.hijack()
  const { raw } = reply
  raw.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const send = (event: unknown): void => void raw.write(`data: ${jsonWithoutSecrets(event)}\n\n`)
  try {
    await work(send)
  } catch (cause) {
    send({ error: { message: (cause as Error).message, type: 'internal', code: 500 } })
  }
  raw.end('data: [DONE]\n\n')
  return reply
}
