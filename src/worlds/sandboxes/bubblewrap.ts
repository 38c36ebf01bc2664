import { existsSync } from 'node:fs'
import { boundWords, type Enclosed, namesOfKeys, systemFolders } from './enclosure.ts'

/** The words that run a command within the same walls, built by bubblewrap. */
export function bubblewrapWords(
  { readable, writable, binds = [], hasNetwork, workingFolder, limits }: Enclosed,
  command: readonly string[],
): readonly string[] {
  return [
    ...['bwrap', '--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts'],
    ...(hasNetwork ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ...systemFolders.flatMap(folder => ['--ro-bind-try', folder, folder]),
    ...['--dev', '/dev', '--proc', '/proc'],
    ...namesOfKeys.filter(name => existsSync(name)).flatMap(name => ['--bind', '/dev/null', name]),
    ...['--remount-ro', '/proc', '--tmpfs', '/tmp'],
    ...readable.flatMap(path => ['--ro-bind', path, path]),
    ...writable.flatMap(path => ['--bind', path, path]),
    ...binds.flatMap(({ from, to }) => ['--bind', from, to]),
    ...['--chdir', workingFolder, ...boundWords(limits), ...command],
  ]
}
