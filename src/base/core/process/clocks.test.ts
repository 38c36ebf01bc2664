import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

/** Code that says when something was; whatever counts how long it took asks a clock that never jumps. */
const tellsDates = [
  'doors/gateway/answer-http.ts',
  'doors/gateway/attempts.ts',
  'doors/gateway/openenv-routes.ts',
  'doors/gateway/traces.ts',
  // How old a folder is that another program left.
  'doors/cluster/local-folder.ts',
  'run/watch/trackers/tensorboard.ts',
  'run/watch/telemetry/traces.ts',
]

it('H7: no time is counted by a clock that somebody can set', () => {
  const root = new URL('../../../', import.meta.url)
  const files = (readdirSync(root, { recursive: true }) as string[]).filter(
    file => file.endsWith('.ts') && !/\.test\.ts$/.test(file),
  )
  expect(files.length).toBeGreaterThan(500)
  const asking = files.filter(file =>
    readFileSync(new URL(file, root), 'utf8').includes('Date.now('),
  )
  expect(asking.sort()).toEqual(tellsDates.toSorted())
})
