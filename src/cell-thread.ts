// The program of a cell's thread: trains one arm with one seed and answers with what it gave.
import './offers.ts'
import { parentPort, workerData } from 'node:worker_threads'
import { describeCause } from './base/core/failure.ts'
import { keepSecret, withoutSecrets } from './base/core/process/secrets.ts'
import type { CellNews, CellStart } from './learn/experiment/cell-in-thread.ts'
import { runCell } from './learn/experiment/run-cell.ts'

const { cell, secrets } = workerData as CellStart
const port = parentPort!
const send = (news: CellNews): void => port.postMessage(news)
const stop = new AbortController()
for (const secret of secrets) keepSecret(secret)
port.once('message', () => stop.abort(new Error('the experiment was stopped')))
try {
  const tell = (line: string): void => send({ kind: 'line', line })
  send({ kind: 'ended', result: await runCell(cell, { signal: stop.signal, tell }) })
} catch (cause) {
  send({ kind: 'failed', reason: withoutSecrets(describeCause(cause)) })
}
