import type { Finished } from '../../sandboxes/run.ts'

/** Where we keep files on a machine: it outlasts a pause, and every Linux has it. */
export const machineFolder = '/var/tmp'

/** A command as a machine's shell runs it. */
export interface MachineCommand {
  /** Names this run: its processes carry it, and its answer begins with it. */
  readonly id: string
  readonly words: readonly string[]
  readonly folder: string
  readonly variables: Readonly<Record<string, string>>
  readonly seconds: number
  readonly outputBytes: number
  /** A file that it reads. */
  readonly input: string
}

/** A text as one word of a shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

/** Ends all processes of a run, however far they have gone from whatever started them. */
export function sweepLine(id: string): string {
  const left = `grep -ls ESPALIER_RUN=${id} /proc/[0-9]*/environ | cut -d/ -f3`
  return `for n in 1 2 3; do l=$(${left}); [ -z "$l" ] && break; kill -9 $l 2>/dev/null; done`
}

/**
 * The line of shell that runs a command, ends all that it leaves behind, and prints its exit code and the
 * beginnings of its output and complaints, in letters that every way of carrying them leaves alone.
 */
export function commandLine(command: MachineCommand): string {
  const { id, words, folder, seconds, outputBytes, input } = command
  const given = settingsOf(command)
  const run = words.map(quote).join(' ')
  const keep = (name: string): string =>
    `{ head -c ${outputBytes} > $d/${name}; wc -c > $d/${name}.more; } < $d/${name}.pipe &`
  return [
    `d=$(mktemp -d ${machineFolder}/espalier-XXXXXX) && mkfifo $d/out.pipe $d/err.pipe || exit 1`,
    keep('out'),
    keep('err'),
    `cd ${quote(folder)} && env ${given} timeout -s KILL ${seconds} ${run} < ${input} > $d/out.pipe 2> $d/err.pipe; c=$?`,
    sweepLine(id),
    'wait',
    `echo "${id} $c $(cat $d/out.more) $(cat $d/err.more)"`,
    'base64 < $d/out | tr -d "\\n"; echo',
    'base64 < $d/err | tr -d "\\n"; echo',
    'rm -rf $d',
  ].join('\n')
}

/** The line of shell that runs a command which is talked to; its complaints go to a file. */
export function talkLine(command: Omit<MachineCommand, 'outputBytes' | 'input'>, errors: string) {
  const { folder, seconds, words } = command
  return `cd ${quote(folder)} && exec env ${settingsOf(command)} timeout -s KILL ${seconds} ${words.map(quote).join(' ')} 2> ${errors}`
}

/** The line of shell that ends all of a run, and prints what it complained of. */
export function afterTalkLine(id: string, errors: string, outputBytes: number): string {
  return `${sweepLine(id)}; head -c ${outputBytes} ${errors} | base64 | tr -d "\\n"; rm -f ${errors}`
}

/** The line that ends the input of a line that is fed. */
export const inputEnd = '.\n'

/** A part of that input, as a line. */
export const inputLine = (part: Buffer): string => `${part.toString('base64')}\n`

/**
 * The line of shell that runs another and feeds it lines of base64 up to the one that ends its input, for vendors
 * that take lines and never end them.
 */
export function fedLine(line: string): string {
  const read = `while IFS= read -r l <&3; do case $l in .) break;; "") ;; *) printf %s "$l" | base64 -d;; esac; done`
  const script = [
    `exec 3<&0; p=$(mktemp -u ${machineFolder}/espalier-XXXXXX) && mkfifo $p || exit 1`,
    `{ ${read}; } > $p 2> /dev/null & r=$!`,
    `( ${line} ) < $p; c=$?`,
    'kill $r 2> /dev/null; rm -f $p; exit $c',
  ]
  return `/bin/sh -c ${quote(script.join('\n'))}`
}

function settingsOf({ variables, id }: Pick<MachineCommand, 'variables' | 'id'>): string {
  const settings = Object.entries({ ...variables, ESPALIER_RUN: id })
  return settings.map(([name, value]) => quote(`${name}=${value}`)).join(' ')
}

/** Reads what the line of a command printed; undefined if that is not what it prints. */
export function readAnswer(id: string, printed: string): Omit<Finished, 'end'> | undefined {
  const at = printed.indexOf(`${id} `)
  const [head = '', output, complaints] = printed.slice(at).split('\n')
  const numbers = head.split(/\s+/).slice(1).map(Number)
  const [code, outputCut, complaintsCut] = numbers
  if (at < 0 || numbers.length !== 3 || !numbers.every(Number.isSafeInteger)) return undefined
  return {
    code: code!,
    output: Buffer.from(output ?? '', 'base64').toString(),
    complaints: Buffer.from(complaints ?? '', 'base64').toString(),
    cut: outputCut! + complaintsCut!,
  }
}
