// Builds the page of `viewer/` into `dist/viewer`: one script, one style sheet, three fonts.
import { readFileSync, writeFileSync } from 'node:fs'
import { build } from 'vite'

const fonts = ['inter', 'source-serif-4', 'jetbrains-mono']

const asked = "domEnv ? nav.language : 'en-US'"

/**
 * The page is in English, and so are its numbers. uPlot uses the browser's language, which on some systems is
 * not a valid tag (`en-US@posix`): the whole page would then stay empty.
 */
const inEnglish = {
  name: 'in-english',
  transform(code, file) {
    if (!/uPlot\.esm\.js/.test(file)) return undefined
    if (!code.includes(asked)) throw new Error(`uPlot no longer says "${asked}": look at it again.`)
    return { code: code.replace(asked, "'en-US'"), map: null }
  },
}

/** Builds the page; everything it needs is inside. */
export async function buildViewer() {
  await build({
    configFile: false,
    root: 'viewer',
    base: './',
    logLevel: 'warn',
    build: {
      outDir: '../dist/viewer',
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: false,
      target: 'es2022',
    },
    plugins: [inEnglish],
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  })
  writeFileSync('dist/viewer/licenses.txt', licenses())
}

/** The licenses of the bundled packages, which must be distributed with them. */
function licenses() {
  const of = name => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}\n`
  return ['preact', 'uplot', ...fonts.map(font => `@fontsource-variable/${font}`)]
    .map(of)
    .join(`\n${'-'.repeat(80)}\n\n`)
}
