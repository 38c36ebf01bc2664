// Builds `dist/`: the WASM kernels, the files of threads, compiled JavaScript and declarations, joined, and the page.
// With --if-changed, only where it was not built from the same sources already.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, rmSync, symlinkSync } from 'node:fs'
import { isBuilt, keepStamp, parts, stampOf } from './build-stamp.mjs'

function run(command, ...words) {
  const { status } = spawnSync(process.execPath, [`node_modules/${command}`, ...words], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

async function build() {
  const stamp = stampOf()
  await import('./build-parts.mjs')
  rmSync('dist', { recursive: true, force: true })
  run('typescript/bin/tsc', '-p', 'tsconfig.build.json')
  for (const part of parts) cpSync(`src/${part}`, `dist/${part}`, { recursive: true })
  await (await import('./bundle.mjs')).bundle()
  await (await import('./build-viewer.mjs')).buildViewer()
  keepStamp(stamp)
}

if (!process.argv.includes('--if-changed') || !isBuilt()) await build()

// So that `npx --no-install espalier` runs the checkout's own program.
if (existsSync('node_modules/.bin') && process.platform !== 'win32') {
  chmodSync('dist/cli/main.js', 0o755)
  rmSync('node_modules/.bin/espalier', { force: true })
  symlinkSync('../../dist/cli/main.js', 'node_modules/.bin/espalier')
  // Remove the newer Node that one test installs, so that it does not replace the user's own.
  rmSync('node_modules/.bin/node', { force: true })
}
