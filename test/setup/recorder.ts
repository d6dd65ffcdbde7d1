import type { Observer, Signal } from '../../src/entries/observe.ts'

/** An observer that keeps what it hears. */
export interface Recorder extends Observer {
  readonly signals: readonly Signal[]
  /** The signals of one kind. */
  of<K extends Signal['signal']>(kind: K): readonly Extract<Signal, { signal: K }>[]
  /** What was told about one key, in short: `reserved created`, `call_ended executed`. */
  story(key: string): readonly string[]
}

export function makeRecorder(): Recorder {
  const signals: Signal[] = []
  return {
    signals,
    signal: (signal) => void signals.push(signal),
    of: <K extends Signal['signal']>(kind: K) =>
      signals.filter((signal): signal is Extract<Signal, { signal: K }> => signal.signal === kind),
    story: (key) =>
      signals.filter((signal) => 'id' in signal && signal.id?.key === key).map((signal) => shorten(signal)),
  }
}

function shorten(signal: Signal): string {
  switch (signal.signal) {
    case 'reserved':
      return `${signal.signal} ${signal.kind}`
    case 'call_ended':
      return `${signal.signal} ${signal.outcome}${signal.code === null ? '' : ` ${signal.code}`}`
    case 'herd':
      return `${signal.signal} ${signal.size}`
    case 'store_error':
      return `${signal.signal} ${signal.step} ${signal.code}`
    case 'reconcile_scheduled':
      return `${signal.signal} ${signal.failure.code}`
    default:
      return signal.signal
  }
}
