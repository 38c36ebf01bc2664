// Builds `dist/` of both packages: WASM kernels, joined modules, declarations, the page.
// With --if-changed, only if it was not built from these sources already.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync, symlinkSync } from 'node:fs'
import { isBuilt, keepStamp, stampOf } from './build-stamp.mjs'

function run(command, ...words) {
  const { status } = spawnSync(process.execPath, [`node_modules/${command}`, ...words], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

const declare = project => run('typescript/bin/tsc', '-p', project)

async function build() {
  const stamp = stampOf()
  const { bundle, bundleText, entries, textEntries } = await import('./bundle.mjs')
  const { keepReachable } = await import('./declarations.mjs')
  for (const folder of ['packages/text/dist', 'dist'])
    rmSync(folder, { recursive: true, force: true })
  declare('packages/text/tsconfig.build.json')
  keepReachable('packages/text/dist', textEntries)
  await bundleText()
  declare('tsconfig.build.json')
  keepReachable('dist', entries)
  await bundle()
  await (await import('./build-kernels.mjs')).buildKernels()
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
