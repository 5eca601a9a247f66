//! The views of one database: those that are there, and the calls that make them right.

use std::collections::BTreeMap;

use aws_sdk_glue::Client;
use aws_sdk_glue::operation::create_table::CreateTableError;
use aws_sdk_glue::operation::delete_table::DeleteTableError;
use aws_sdk_glue::types::Table;

use super::Published;
use super::error::GlueError;
use super::presto::{Definition, is_ours};

pub(super) struct Views<'a> {
    glue: &'a Client,
    database: &'a str,
}

impl<'a> Views<'a> {
    pub(super) fn new(glue: &'a Client, database: &'a str) -> Self {
        Self { glue, database }
    }

    /// Makes the database's views these, in order, and deletes other views of ours.
    pub(super) async fn make(
        &self,
        wanted: &[Definition],
        published: &mut Published,
    ) -> Result<(), GlueError> {
        let mut there = self.there().await?;
        for definition in wanted {
            match there.remove(&definition.name) {
                Some(table) if definition.is(&table) => published.unchanged += 1,
                Some(table) if is_ours(&table) => {
                    self.update(definition).await?;
                    note(&mut published.updated, &definition.name);
                }
                Some(_) => {
                    return Err(GlueError::NotOurs {
                        database: self.database.to_owned(),
                        name: definition.name.clone(),
                    });
                }
                None => {
                    self.create(definition).await?;
                    note(&mut published.created, &definition.name);
                }
            }
        }
        for (name, table) in there {
            if is_ours(&table) {
                self.delete(&name).await?;
                note(&mut published.deleted, &name);
            }
        }
        Ok(())
    }

    /// Tables and views by name.
    async fn there(&self) -> Result<BTreeMap<String, Table>, GlueError> {
        let mut there = BTreeMap::new();
        let mut pages = self
            .glue
            .get_tables()
            .database_name(self.database)
            .into_paginator()
            .send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| self.failed("GetTables", &error))?;
            for table in page.table_list.unwrap_or_default() {
                there.insert(table.name.clone(), table);
            }
        }
        Ok(there)
    }

    async fn create(&self, definition: &Definition) -> Result<(), GlueError> {
        let call = self.glue.create_table().database_name(self.database);
        let sent = call.set_table_input(definition.input().build().ok()).send();
        let created = sent.await;
        match created {
            Ok(_) => Ok(()),
            // Another publisher was faster: make it what this one wants all the same.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(CreateTableError::is_already_exists_exception) =>
            {
                self.update(definition).await
            }
            Err(error) => Err(self.failed("CreateTable", &error)),
        }
    }

    async fn update(&self, definition: &Definition) -> Result<(), GlueError> {
        let call = self.glue.update_table().database_name(self.database);
        // Glue keeps a limited number of versions, and nobody asks for those of a view.
        let call = call.skip_archive(true);
        let sent = call.set_table_input(definition.input().build().ok()).send();
        let updated = sent.await;
        updated
            .map(drop)
            .map_err(|error| self.failed("UpdateTable", &error))
    }

    async fn delete(&self, name: &str) -> Result<(), GlueError> {
        let call = self.glue.delete_table().database_name(self.database);
        match call.name(name).send().await {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(DeleteTableError::is_entity_not_found_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(self.failed("DeleteTable", &error)),
        }
    }

    fn failed<E, R>(
        &self,
        operation: &'static str,
        error: &aws_sdk_glue::error::SdkError<E, R>,
    ) -> GlueError
    where
        E: aws_sdk_glue::error::ProvideErrorMetadata + std::error::Error + 'static,
        R: std::fmt::Debug,
    {
        GlueError::call(operation, self.database, error)
    }
}

/// Views may be written several times where baselines are committed meanwhile.
fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|noted| noted == name) {
        names.push(name.to_owned());
    }
}
