import { readFileSync } from 'node:fs'

/** The commands of a page, block after block; a comment before a block keeps it from being run. */
export function commandsOf(page: string): readonly string[] {
  const blocks = readFileSync(page, 'utf8').matchAll(
    /(<!-- not run: [^>]*-->\n)?```sh\n([\s\S]*?)```/g,
  )
  return [...blocks].flatMap(([, comment, code]) =>
    comment ? [] : code!.split('\n').filter(line => line.trim() !== ''),
  )
}

/** The words after the program's name, with the quotes of a shell taken off. */
export function wordsOf(command: string): readonly string[] {
  const line = command.replace(/^(npx )?espalier /, '')
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!)
}
