import { spawn } from 'node:child_process'
import { type FSWatcher, watch } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isUserPart, splitUserPart } from '../run/settings/user-part.ts'
import { type Invocation, MisuseError } from './command.ts'

/** Runs this command now and again whenever a file beside a named one changes, in a process of its own. */
export async function rerunOnChange(
  names: readonly string[],
  calledIn: string,
  { terminal, signal }: Invocation,
): Promise<number> {
  const files = names.filter(isUserPart).map(name => resolve(splitUserPart(name)[0]))
  if (files.length === 0) {
    throw new MisuseError('--watch needs a part of your own to watch: --reward ./file.ts#export')
  }
  const folders = [...new Set(files.map(file => dirname(file)))]
  const words = [...process.argv.slice(1).filter(word => word !== '--watch'), '--dry-run']
  for (;;) {
    const changed = nextChange(folders, signal)
    await runOnce(words, { cwd: calledIn, signal })
    terminal.tell(`watching ${folders.join(', ')}; Ctrl-C ends it`)
    if (!(await changed)) return 0
  }
}

function runOnce(
  words: readonly string[],
  where: { cwd: string; signal: AbortSignal },
): Promise<void> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [...words], { stdio: 'inherit', ...where })
    child.on('error', () => resolve())
    child.on('close', () => resolve())
  })
}

/** Resolves at the next change of a source file, a moment later so that editors are done; false when stopped. */
function nextChange(folders: readonly string[], signal: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const watchers: FSWatcher[] = []
    const end = (isChanged: boolean): void => {
      for (const watcher of watchers) watcher.close()
      resolve(isChanged)
    }
    for (const folder of folders) {
      watchers.push(
        watch(folder, (_event, file) => {
          if (file && /\.([cm]?[jt]sx?|json|toml)$/.test(file)) setTimeout(() => end(true), 100)
        }),
      )
    }
    signal.addEventListener('abort', () => end(false), { once: true })
  })
}
