// Takes the pictures of README and docs again, by the tests that click through the viewer.
import { spawnSync } from 'node:child_process'

const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', 'test/browser/views.test.ts'],
  { stdio: 'inherit', env: { ...process.env, ESPALIER_SCREENSHOTS: 'docs/images' } },
)
process.exit(status ?? 1)
