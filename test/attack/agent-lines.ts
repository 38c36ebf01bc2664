import { PassThrough } from 'node:stream'
import { makePeer, RefusedCall } from '../../src/worlds/harnesses/acp/json-rpc.ts'
import { type Attack, damagedJson, hold, oneOf, piecesOf } from './attack.ts'

const messages: readonly unknown[] = [
  { jsonrpc: '2.0', id: 0, result: { protocolVersion: 1 } },
  { jsonrpc: '2.0', id: 0, error: { code: 1, message: 'no', data: {} } },
  { jsonrpc: '2.0', id: 'a', method: 'fs/read_text_file', params: { path: '/etc/passwd' } },
  { jsonrpc: '2.0', id: 'b', method: '__proto__', params: {} },
  { jsonrpc: '2.0', method: 'session/update', params: { update: { sessionUpdate: 'x' } } },
  { jsonrpc: '2.0', method: 'constructor', params: null },
]

const pieces = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  '\0',
  '\u{10ffff}',
  '\r',
  'null',
  '1e999',
  '{}'.repeat(99),
]

/** Lines of an agent that keeps to no protocol: nothing is thrown past the attempt, and whoever waits is told. */
export const agentLines: Attack = {
  name: 'agent lines',
  promise: 'H1',
  share: 10,
  async open() {
    return async draw => {
      const output = new PassThrough()
      let answered = ''
      let exit: (ended: { readonly code: number }) => void = () => {}
      const exited = new Promise<{ readonly code: number }>(resolve => {
        exit = resolve
      })
      const peer = makePeer(
        {
          ...{ output, complaints: new PassThrough(), exited },
          write: text => {
            answered += text
          },
          finish: () => {},
          kill: () => {},
        },
        {
          requests: {
            'fs/read_text_file': () => {
              throw new RefusedCall(-1, 'no')
            },
          },
          notifications: {
            'session/update': () => {
              if (draw() < 0.2) throw new Error('too much')
            },
          },
        },
      )
      const ended = peer.ask('initialize', {}).then(
        () => 'answered',
        () => 'refused',
      )
      for (let count = 0; count < 8; count++) {
        const line =
          draw() < 0.7
            ? JSON.stringify(damagedJson(oneOf(messages, draw), draw))
            : piecesOf(pieces, 12, draw)
        output.write(`${line ?? ''}${draw() < 0.9 ? '\n' : ''}`)
      }
      exit({ code: 1 })
      hold(['answered', 'refused'].includes(await ended), 'whoever waited was told nothing')
      for (const line of answered.trimEnd().split('\n')) JSON.parse(line)
    }
  },
}
