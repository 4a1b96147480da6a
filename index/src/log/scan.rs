//! Reading a commit log after a stop: every frame that counts, and where it ends.
//!
//! A frame counts if it verifies and chains to the one before. Where the next one does not, a later
//! frame that was written when the log was already synced beyond this place says that the place is
//! damaged: what lies between is named, and the scan goes on there. Else the log ends here.

use super::path_of;
use crate::Error;
use crate::disk::{Disk, DiskFile, Open, read_file};
use crate::record::{self, Body, Frame, Position};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a scan found, besides the frames it handed out.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// Where the log ends.
    pub end: Position,
    /// The checksum of its last frame.
    pub chain: u32,
    /// Places that were synced and do not verify.
    pub damaged: Vec<(Position, Position)>,
    /// Frames beyond the end that verify by themselves, and the one there that does not: never
    /// acknowledged at `disk`, and cut.
    pub cut_frames: u64,
    /// The highest number of a segment file, whether it counts or not.
    pub last_number: u32,
    /// The boot under which the last segment was begun.
    pub boot_id: String,
    /// The log ends with a clean stop.
    pub is_clean: bool,
}

/// Bytes of a segment that are read at once: few enough that the next ones get the same memory.
const WINDOW: usize = 1 << 20;

/// Bytes of a segment that hold its first frame.
const HEAD_LEN: usize = 4096;

struct Walk<'a> {
    disk: &'a dyn Disk,
    /// Segment numbers on disk, and the header of those that have one.
    headers: BTreeMap<u32, Option<record::Segment>>,
    open: Option<OpenSegment>,
}

/// The segment that is being read.
struct OpenSegment {
    number: u32,
    file: Arc<dyn DiskFile>,
    len: usize,
    /// From here on no frame counts, by the word of the segment that followed it.
    end: Option<Position>,
    /// What was read of it last, and where that begins.
    window: Bytes,
    begin: usize,
}

/// Hands every frame from `from` on to `visit`, in order.
pub fn scan(
    disk: &dyn Disk,
    from: Position,
    mut visit: impl FnMut(&Frame) -> Result<(), Error>,
) -> Result<Scan, Error> {
    let mut walk = Walk::open(disk, from)?;
    let last_number = walk.headers.last_key_value().map_or(0, |(number, _)| *number);
    let mut scan = Scan { end: from, last_number, ..Scan::default() };
    let mut chain = None;
    let mut at = from;
    loop {
        let frame =
            walk.frame_at(at)?.filter(|frame| chain.is_none_or(|chain| frame.chain == chain));
        if let Some(frame) = frame {
            scan.take(&frame);
            visit(&frame)?;
            chain = Some(frame.checksum);
            at = Position(at.0 + u64::from(frame.len));
            scan.end = at;
        } else if let Some(next) = walk.successor(at) {
            at = next;
        } else {
            let (next, cut) = walk.beyond(at)?;
            let Some(next) = next else {
                scan.cut_frames = cut;
                return Ok(scan);
            };
            scan.damaged.push((at, next));
            chain = None;
            at = next;
        }
    }
}

impl Scan {
    fn take(&mut self, frame: &Frame) {
        self.chain = frame.checksum;
        self.is_clean = matches!(frame.body, Body::Stop(_));
        if let Body::Segment(segment) = &frame.body {
            self.boot_id.clone_from(&segment.boot_id);
        }
    }
}

impl<'a> Walk<'a> {
    fn open(disk: &'a dyn Disk, from: Position) -> Result<Self, Error> {
        let mut walk = Walk { disk, headers: BTreeMap::new(), open: None };
        for number in super::numbers(disk)?.filter(|number| *number >= from.segment()) {
            let head = OpenSegment::open(disk, number)?.read(0, HEAD_LEN)?;
            let frame = record::decode(&head, 0, Position::new(number, 0));
            let header = frame.and_then(|frame| match frame.body {
                Body::Segment(segment) => Some(segment),
                _ => None,
            });
            if let Some(header) = &header
                && header.format > record::FORMAT
            {
                let (file, found) = (path_of(number), header.format);
                return Err(Error::NewerFormat { file, found, known: record::FORMAT });
            }
            if let Some(found) = record::newer_version(&head, Position::new(number, 0)) {
                let file = path_of(number);
                return Err(Error::NewerFormat { file, found, known: record::FORMAT });
            }
            walk.headers.insert(number, header);
        }
        Ok(walk)
    }

    /// The segment of `at`, if there is one.
    fn segment_of(&mut self, at: Position) -> Result<Option<&mut OpenSegment>, Error> {
        if !self.headers.contains_key(&at.segment()) {
            return Ok(None);
        }
        let open = match self.open.take() {
            Some(open) if open.number == at.segment() => open,
            _ => {
                let end = self.declared_end(at.segment()).map(|(end, _)| end);
                OpenSegment { end, ..OpenSegment::open(self.disk, at.segment())? }
            }
        };
        Ok(Some(self.open.insert(open)))
    }

    /// What lies at `at`: `len` bytes at least, or all to the end of the segment.
    fn bytes_at(&mut self, at: Position, len: usize) -> Result<&[u8], Error> {
        let Some(open) = self.segment_of(at)? else { return Ok(&[]) };
        let from = open.have(at.offset() as usize, len)?;
        Ok(&open.window[from..])
    }

    /// Where segment `number` ends by the word of the one that followed it.
    fn declared_end(&self, number: u32) -> Option<(Position, Position)> {
        let follows = |header: &record::Segment| Position(header.previous_end).segment() == number;
        let (next, header) = self
            .headers
            .range(number + 1..)
            .filter_map(|(next, header)| header.as_ref().map(|header| (*next, header)))
            .rfind(|(_, header)| follows(header))?;
        Some((Position(header.previous_end), Position::new(next, 0)))
    }

    fn successor(&self, at: Position) -> Option<Position> {
        self.declared_end(at.segment()).filter(|(end, _)| *end == at).map(|(_, next)| next)
    }

    fn frame_at(&mut self, at: Position) -> Result<Option<Frame>, Error> {
        let Some(open) = self.segment_of(at)? else { return Ok(None) };
        if open.end.is_some_and(|end| at >= end) {
            return Ok(None);
        }
        let from = open.have(at.offset() as usize, record::FRAME_LEN)?;
        let Some(len) = record::claimed_len(&open.window[from..]) else { return Ok(None) };
        let from = open.have(at.offset() as usize, len)?;
        Ok(record::decode(&open.window, from, at))
    }

    /// The first later frame that proves the place before it damaged, and how many frames that
    /// prove nothing lie at `at` and beyond.
    fn beyond(&mut self, at: Position) -> Result<(Option<Position>, u64), Error> {
        let torn = self.bytes_at(at, record::FRAME_LEN)?;
        let mut cut = u64::from(record::is_begun(torn, at));
        let mut first = None;
        let numbers: Vec<u32> =
            self.headers.range(at.segment()..).map(|(number, _)| *number).collect();
        for number in numbers {
            let mut position = match number == at.segment() {
                true => Position(at.0 + 8),
                false => Position::new(number, 0),
            };
            while let Some(start) = self.next_start(position)? {
                position = Position(start.0 + 8);
                let Some(frame) = self.frame_at(start)? else { continue };
                cut += 1;
                first.get_or_insert(start);
                if frame.synced > at {
                    return Ok((first, 0));
                }
                position = Position(start.0 + u64::from(frame.len));
            }
        }
        Ok((None, cut))
    }

    /// The first place from `from` on, in its segment, at which a frame may begin.
    fn next_start(&mut self, from: Position) -> Result<Option<Position>, Error> {
        let mut at = from;
        loop {
            let bytes = self.bytes_at(at, record::FRAME_LEN)?;
            if bytes.len() < record::FRAME_LEN {
                return Ok(None);
            }
            let last = bytes.len() - record::FRAME_LEN;
            if let Some(place) = record::next_start(bytes).filter(|place| *place <= last) {
                return Ok(Some(Position(at.0 + place as u64)));
            }
            at = Position(at.0 + (last / 8 * 8 + 8) as u64);
        }
    }
}

impl OpenSegment {
    fn open(disk: &dyn Disk, number: u32) -> Result<Self, Error> {
        let path = path_of(number);
        let file = disk.open(&path, Open::Read).map_err(Error::disk("open", &path))?;
        let len = file.len().map_err(Error::disk("stat", &path))?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(OpenSegment { number, file, len, end: None, window: Bytes::new(), begin: 0 })
    }

    /// Where in the window `at` is, once it has `len` bytes there, or all to the end of the file.
    fn have(&mut self, at: usize, len: usize) -> Result<usize, Error> {
        let end = self.begin + self.window.len();
        let wanted = at.saturating_add(len).min(self.len);
        if at < self.begin || wanted > end {
            // The memory of the last window is free for the next one.
            self.window = Bytes::new();
            self.window = self.read(at, len.max(WINDOW))?;
            self.begin = at;
        }
        Ok((at - self.begin).min(self.window.len()))
    }

    /// `len` bytes at `at`, or all to the end.
    fn read(&self, at: usize, len: usize) -> Result<Bytes, Error> {
        let len = len.min(self.len.saturating_sub(at));
        let bytes = read_file(&*self.file, at as u64, len as u64);
        bytes.map(Bytes::from).map_err(Error::disk("read", path_of(self.number)))
    }
}
