//! Reading a commit log after a stop: every frame that counts, and where it ends.
//!
//! A frame counts if it verifies and chains to the one before. Where the next one does not, a later
//! frame that was written when the log was already synced beyond this place says that the place is
//! damaged: what lies between is named, and the scan goes on there. Else the log ends here.

use super::{DIR, number_of, path_of};
use crate::Error;
use crate::disk::{Disk, Open};
use crate::record::{self, Body, Frame, Position};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::Path;

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

struct Walk<'a> {
    disk: &'a dyn Disk,
    /// Segment numbers on disk, and the header of those that have one.
    headers: BTreeMap<u32, Option<record::Segment>>,
    loaded: Option<(u32, Bytes)>,
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
        let entries = disk.list(Path::new(DIR)).map_err(Error::disk("list", DIR))?;
        let numbers = entries.iter().filter_map(|entry| number_of(&entry.name));
        let numbers: Vec<u32> = numbers.filter(|number| *number >= from.segment()).collect();
        let mut walk = Walk { disk, headers: BTreeMap::new(), loaded: None };
        for number in numbers {
            let head = read(disk, number, 4096)?;
            let frame = record::decode(&head, Position::new(number, 0));
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

    fn segment(&mut self, number: u32) -> Result<Bytes, Error> {
        if let Some((loaded, bytes)) = &self.loaded
            && *loaded == number
        {
            return Ok(bytes.clone());
        }
        let bytes = match self.headers.contains_key(&number) {
            true => read(self.disk, number, usize::MAX)?,
            false => Bytes::new(),
        };
        self.loaded = Some((number, bytes.clone()));
        Ok(bytes)
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
        if self.declared_end(at.segment()).is_some_and(|(end, _)| at >= end) {
            return Ok(None);
        }
        let bytes = self.segment(at.segment())?;
        let offset = at.offset() as usize;
        Ok(if offset < bytes.len() { record::decode(&bytes.slice(offset..), at) } else { None })
    }

    /// The first later frame that proves the place before it damaged, and how many frames that
    /// prove nothing lie at `at` and beyond.
    fn beyond(&mut self, at: Position) -> Result<(Option<Position>, u64), Error> {
        let torn = self.segment(at.segment())?;
        let torn = torn.get(at.offset() as usize..).unwrap_or_default();
        let mut cut = u64::from(record::is_begun(torn, at));
        let mut first = None;
        let numbers: Vec<u32> =
            self.headers.range(at.segment()..).map(|(number, _)| *number).collect();
        for number in numbers {
            let bytes = self.segment(number)?;
            let mut offset = if number == at.segment() { at.offset() as usize + 8 } else { 0 };
            while offset + record::FRAME_LEN <= bytes.len() {
                let position = Position::new(number, offset as u32);
                let starts = record::may_start(&bytes[offset..]);
                let Some(frame) = starts.then(|| self.frame_at(position)).transpose()?.flatten()
                else {
                    offset += 8;
                    continue;
                };
                cut += 1;
                first.get_or_insert(position);
                if frame.synced > at {
                    return Ok((first, 0));
                }
                offset += frame.len as usize;
            }
        }
        Ok((None, cut))
    }
}

fn read(disk: &dyn Disk, number: u32, max: usize) -> Result<Bytes, Error> {
    let path = path_of(number);
    let file = disk.open(&path, Open::Read).map_err(Error::disk("open", &path))?;
    let len = file.len().map_err(Error::disk("stat", &path))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(max)];
    crate::disk::read_exact_at(&*file, &mut bytes, 0).map_err(Error::disk("read", &path))?;
    Ok(bytes.into())
}
