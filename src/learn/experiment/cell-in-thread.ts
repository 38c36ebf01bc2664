import { Worker } from 'node:worker_threads'
import { builtFile } from '../../base/core/process/package-folder.ts'
import { knownSecrets } from '../../base/core/process/secrets.ts'
import type { Cell, CellResult } from './cell.ts'
import type { CellOptions } from './run-cell.ts'

/** What a cell's thread starts with. */
export interface CellStart {
  readonly cell: Cell
  readonly secrets: readonly string[]
}

/** What a cell's thread says. */
export type CellNews =
  | { readonly kind: 'line'; readonly line: string }
  | { readonly kind: 'ended'; readonly result: CellResult }
  | { readonly kind: 'failed'; readonly reason: string }

/** Runs a cell in a thread of its own, with one thread for its model. */
export async function runCellInThread(
  cell: Cell,
  { signal, tell }: CellOptions,
): Promise<CellResult> {
  signal.throwIfAborted()
  const start: CellStart = { cell, secrets: knownSecrets() }
  const worker = new Worker(builtFile('cell-thread.js'), {
    workerData: start,
    name: 'cell',
  })
  const stop = (): void => worker.postMessage('stop')
  signal.addEventListener('abort', stop)
  try {
    return await new Promise((resolve, reject) => {
      worker.on('message', (news: CellNews) => {
        if (news.kind === 'line') tell(news.line)
        else if (news.kind === 'ended') resolve(news.result)
        else reject(new Error(news.reason))
      })
      worker.on('error', reject)
      worker.on('exit', () => reject(new Error('its thread ended by itself')))
    })
  } finally {
    signal.removeEventListener('abort', stop)
    await worker.terminate()
  }
}
